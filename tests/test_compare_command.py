"""`python -m srs_eval.compare`: what it understands, what it refuses, what it leaves behind."""

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from commands import QUIET, SMALL
from commands import run_here as run_command

from srs_eval.commands.compare import command
from srs_eval.comparison.report import html
from srs_eval.results.files import read_json

SWEEP = ("-m", "algo=avg,constant,moving_avg", "panel=quick", *SMALL, *QUIET)
FILES = {"comparison.md", "comparison.tex", "comparison.csv", "comparison.json", "report.html"}


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    assert run_command([*SWEEP, f"hydra.sweep.dir={folder}"]) == 0
    return folder


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """Begin in an empty folder, and draw no images, which take longer than all else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(html, "_image", lambda figure, alt: (alt, ""))


def compared(*words):
    """Compare runs in a folder of their own; return the content of the JSON file."""
    shutil.rmtree("out", ignore_errors=True)
    assert command([*map(str, words), "out=out", "tracking=none"]) == 0
    assert {path.name for path in Path("out").glob("*.*")} == FILES
    return read_json(Path("out") / "comparison.json")


def means(found):
    return {row["run"]: row["mean"] for row in found["leaderboard"] if row["weighting"] == "users"}


def test_a_sweep_is_compared_from_its_folder(sweep, capsys):
    found = compared(sweep)
    said = capsys.readouterr().out
    assert "3 runs on synthetic, protocol srs_benchmark, " in said
    assert "Rests on 2 of 2 users and " in said
    assert "baseline avg" in said
    losses = {
        file.parent.name.partition("_")[2]: read_json(file)["metrics"]["log_loss"]["mean_users"]
        for file in sweep.glob("*/summary.json")
    }
    assert means(found) == pytest.approx(losses)
    assert [run["when"] for run in found["runs"]] == 2 * ["previous_review"] + ["at_review"]
    assert found["leaders"] == {"previous_review": "avg", "at_review": "moving_avg"}
    assert command([str(sweep), "tracking=none"]) == 0
    assert list(Path().glob("outputs/*/*_compare/report.html"))


def test_runs_are_chosen_by_when_they_predict_and_tables_by_their_labels(sweep, capsys):
    for when, asked in (("previous_review", "ahead"), ("at_review", "imm")):
        found = compared(sweep, f"when={asked}", "latex=runs,leaderboard_users", "metric=brier")
        assert {run["when"] for run in found["runs"]} == {when}
        assert found["metric"] == "brier"
        written = Path("out/comparison.tex").read_text("utf-8")
        assert re.findall(r"label\{tab:(\w+)", written) == ["leaderboard_users", "runs"]
    assert command([str(sweep), "when=day_before", "tracking=none"]) == 2
    told = capsys.readouterr().err
    assert "previous_review (2)" in told
    assert "at_review (1)" in told


def test_published_scores_are_listed_beside_the_runs(sweep):
    scores = pd.read_parquet(sweep / "0_avg" / "scores.parquet")
    table = scores[["user", "log_loss"]].assign(size=scores.reviews, when="ahead")
    both = pd.concat([table.assign(model="FSRS-6"), table.assign(model="gru")])
    both.to_parquet("theirs.parquet")
    found = compared(sweep / "0_avg", "published=theirs.parquet", "published.models=fsrs6")
    assert means(found) == pytest.approx(dict.fromkeys(("avg", "FSRS-6"), scores.log_loss.mean()))
    assert len(compared("published=theirs.parquet")["runs"]) == 2


@pytest.mark.slow
def test_a_sweep_with_a_report_writes_the_same_comparison(tmp_path):
    sweep = tmp_path / "sweep"
    assert run_command([*SWEEP, "report=true", f"hydra.sweep.dir={sweep}"]) == 0
    assert {path.name for path in (sweep / "comparison").iterdir()} == FILES
    found = json.loads((sweep / "comparison" / "comparison.json").read_text())
    assert found["leaderboard"] == compared(sweep)["leaderboard"]


@pytest.mark.slow
def test_runs_of_other_reviews_are_refused_or_compared_on_those_they_share(sweep, capsys):
    words = ["algo=constant", *SMALL, "data.users=3", *QUIET, "hydra.run.dir=more"]
    assert run_command(words) == 0
    both = [str(sweep / "0_avg"), "more"]
    assert command([*both, "tracking=none", "out=none"]) == 2
    told = capsys.readouterr().err
    assert "avg did not score user 3" in told
    assert not Path("none").exists()
    reviews = compared(*both, "intersect=true")["reviews"]
    assert f"intersect=true compares them on {reviews:,} reviews of 2 users" in told
    said = f"Restricted to 2 users of 3 that runs scored, with {reviews:,} of "
    assert [name for name in FILES if said not in Path("out", name).read_text("utf-8")] == []


@pytest.fixture
def store(tmp_path):
    """The tracking store of a test, and what returns the runs of an experiment in it."""
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")

    def runs_of(experiment):
        found = client.get_experiment_by_name(experiment)
        return list(client.search_runs([found.experiment_id]))

    return client, runs_of


@pytest.mark.slow
def test_a_comparison_is_a_run_of_its_own_that_leads_to_the_runs_compared(store, capsys):
    words = ["-m", "algo=avg,constant", *SMALL, "figures=false", "hydra.sweep.dir=runs"]
    assert run_command(words) == 0
    assert command(["runs", "out=tracked"]) == 0
    assert "this comparison" in capsys.readouterr().out
    client, runs_of = store
    (kept,) = runs_of("srs_eval_comparisons")
    runs = {run.data.tags["label"]: run for run in runs_of("srs_eval")}
    tags, avg = kept.data.tags, runs["avg"]
    assert {tags["parent.avg"], tags["parent.constant"]} == {r.info.run_id for r in runs.values()}
    assert tags["sweep_ids"] == avg.data.tags["sweep_id"]
    files = client.list_artifacts(kept.info.run_id, "comparison")
    assert {Path(file.path).name for file in files} == FILES
    assert kept.data.metrics["log_loss/avg"] == avg.data.metrics["test/log_loss"]

    found = compared(f"sweep_id={tags['sweep_ids']}")
    assert found["leaderboard"] == read_json(Path("tracked/comparison.json"))["leaderboard"]
    assert "Downloading" not in capsys.readouterr().err
    some = [f"tags.sweep_id={tags['sweep_ids']}", "tags.algo=avg", "experiment=srs_eval"]
    assert compared(*some)["baseline"] == "avg"
    none = "no finished run"
    mistakes = {"tags.algo=nobody": none, "experiment=srs_eval_comparisons": none}
    for word, said in (mistakes | {"experiment=absent": "there are"}).items():
        assert command([word, "tracking=none"]) == 2
        assert said in capsys.readouterr().err

    # a run with a failed fit is not passed over
    client.set_terminated(avg.info.run_id, "FAILED")
    empty = client.create_run(avg.info.experiment_id, run_name="came to nothing")
    client.set_terminated(empty.info.run_id, "FAILED")
    assert len(compared("experiment=srs_eval")["runs"]) == 2
    said = f"came to nothing kept no results and was left out: run {empty.info.run_id}"
    assert said in capsys.readouterr().out


@pytest.mark.nightly
def test_runs_that_differ_in_nothing_but_when_they_were_made_are_told_apart(store):
    for name in ("before", "after"):
        assert run_command(["algo=avg", *SMALL, "figures=false", f"hydra.run.dir={name}"]) == 0
    _, runs_of = store
    ids = {run.info.run_id for run in runs_of("srs_eval")}
    for words in (["before", "after"], ["experiment=srs_eval"]):
        assert command([*words, f"out=of_{len(words)}"]) == 0
        tags = runs_of("srs_eval_comparisons")[0].data.tags
        assert set(tags["parents"].split(",")) == ids
        assert {value for name, value in tags.items() if name.startswith("parent.")} == ids


@pytest.mark.slow
def test_results_stay_where_the_tracking_store_cannot_be_used(sweep, capsys):
    assert command([str(sweep), "out=out", "tracking.uri=http://127.0.0.1:9"]) == 1
    assert {path.name for path in Path("out").iterdir()} == FILES
    assert "Traceback" not in capsys.readouterr().err
