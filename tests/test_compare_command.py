"""`python -m srs_eval.compare`: what it understands, what it refuses, what it leaves behind."""

from __future__ import annotations

import json
import shutil
import statistics
from pathlib import Path

import pandas as pd
import pytest
import yaml
from commands import QUIET, SMALL
from commands import run_here as run_command

from srs_eval.commands.compare import command
from srs_eval.comparison.report import html
from srs_eval.results.files import read_json

SWEEP = ("-m", "algo=avg,constant,moving_avg", "panel=quick", *SMALL, *QUIET)
FILES = {"comparison.md", "comparison.tex", "comparison.csv", "comparison.json", "report.html"}


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    assert run_command([*SWEEP, f"hydra.sweep.dir={folder}"]) == 0
    return folder


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.fixture
def _without_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no images, which take longer than all else."""
    monkeypatch.setattr(html, "_image", lambda figure, description: "")


@pytest.mark.usefixtures("_without_images")
def test_a_sweep_is_compared_from_its_folder(
    sweep: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command([str(sweep), f"out={tmp_path / 'out'}", "tracking=none"]) == 0
    said = capsys.readouterr().out
    assert "3 runs on synthetic, protocol srs_benchmark, " in said
    assert "Rests on 2 of 2 users and " in said
    assert "baseline avg" in said
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    found = json.loads((tmp_path / "out" / "comparison.json").read_text())
    losses = {
        path.name.partition("_")[2]: read_json(path / "summary.json")["metrics"]["log_loss"]
        for path in sweep.iterdir()
        if (path / "summary.json").is_file()
    }
    means = {row["run"]: row["mean"] for row in found["leaderboard"] if row["weighting"] == "users"}
    expected = {name: pytest.approx(loss["mean_users"]) for name, loss in losses.items()}
    assert means == expected
    assert [run["when"] for run in found["runs"]] == 2 * ["previous_review"] + ["at_review"]
    assert found["leaders"] == {"previous_review": "avg", "at_review": "moving_avg"}


def test_a_time_at_which_no_run_predicts_is_refused(sweep: Path, capsys) -> None:
    assert command([str(sweep), "when=day_before", "tracking=none"]) == 2
    told = capsys.readouterr().err
    assert "previous_review (2)" in told
    assert "at_review (1)" in told


@pytest.mark.slow
def test_a_sweep_with_a_report_writes_the_same_comparison(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep"
    assert run_command([*SWEEP, "report=true", f"hydra.sweep.dir={sweep}"]) == 0
    assert {path.name for path in (sweep / "comparison").iterdir()} == FILES
    assert command([str(sweep), f"out={tmp_path / 'out'}", "tracking=none"]) == 0
    found, again = (
        json.loads((folder / "comparison.json").read_text())
        for folder in (sweep / "comparison", tmp_path / "out")
    )
    assert found["leaderboard"] == again["leaderboard"]


@pytest.mark.slow
def test_runs_are_chosen_by_when_they_predict_under_either_name(
    sweep: Path, tmp_path: Path
) -> None:
    for when in ("ahead", "previous_review"):
        assert command([str(sweep), f"out={tmp_path / when}", "tracking=none", f"when={when}"]) == 0
        found = json.loads((tmp_path / when / "comparison.json").read_text())
        assert {run["when"] for run in found["runs"]} == {"previous_review"}
    assert command([str(sweep), f"out={tmp_path / 'no'}", "tracking=none", "when=later"]) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("_without_images")
def test_without_a_word_about_it_results_go_to_a_folder_of_their_own(
    sweep: Path, tmp_path: Path
) -> None:
    assert command([str(sweep), "tracking=none"]) == 0
    (page,) = tmp_path.glob("outputs/*/*_compare/report.html")
    assert page.is_file()


@pytest.mark.slow
@pytest.mark.usefixtures("_without_images")
def test_runs_on_other_reviews_are_refused_with_the_reason(
    sweep: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = tmp_path / "more"
    words = ["algo=avg", *SMALL, "data.users=3", *QUIET, f"hydra.run.dir={more}"]
    assert run_command(words) == 0
    both = [str(sweep / "1_constant"), str(more), "tracking=none", f"out={tmp_path / 'out'}"]
    assert command(both) == 2
    assert "constant did not score user 3" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert command([*both, "intersect=true"]) == 0
    assert "Restricted to 2 users of 3" in capsys.readouterr().out


@pytest.mark.slow
def test_runs_under_other_protocols_are_compared_on_the_reviews_they_share(
    sweep: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sklearn.metrics import log_loss

    own = tmp_path / "own"
    words = ["algo=constant", "protocol=prequential", *SMALL, *QUIET, f"hydra.run.dir={own}"]
    assert run_command(words) == 0
    both = [str(sweep / "0_avg"), str(own), "tracking=none", "out=out"]
    assert command(both) == 2
    assert "intersect=true compares them on at most " in capsys.readouterr().err
    assert command([*both, "intersect=true"]) == 0
    ours, theirs = (
        pd.read_parquet(folder / "predictions.parquet") for folder in (sweep / "0_avg", own)
    )
    common = ours.merge(theirs, on=["user", "row"], suffixes=("", "_own"))
    assert 0 < len(common) < len(ours)
    found = read_json(tmp_path / "out" / "comparison.json")
    assert found["reviews"] == len(common)
    means = {row["run"]: row["mean"] for row in found["leaderboard"] if row["weighting"] == "users"}
    losses = [
        [log_loss(of_user.recalled, of_user[p]) for _, of_user in common.groupby("user")]
        for p in ("p", "p_own")
    ]
    assert list(means.values()) == pytest.approx(sorted(map(statistics.mean, losses)))
    said = f"Restricted to {len(common):,} of "
    for name in FILES:
        assert said in (tmp_path / "out" / name).read_text("utf-8")


@pytest.mark.slow
def test_a_comparison_is_a_run_of_its_own_that_leads_to_the_runs_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from mlflow import MlflowClient

    words = ["-m", "algo=avg,constant", *SMALL, "figures=false", "hydra.sweep.dir=runs"]
    assert run_command(words) == 0
    capsys.readouterr()
    assert command(["runs", "out=out"]) == 0
    assert "this comparison" in capsys.readouterr().out
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    place = {e.name: e.experiment_id for e in client.search_experiments()}
    (kept,) = client.search_runs([place["srs_eval_comparisons"]])
    runs = {r.data.tags["label"]: r for r in client.search_runs([place["srs_eval"]])}
    tags = kept.data.tags
    assert {tags["parent.avg"], tags["parent.constant"]} == {r.info.run_id for r in runs.values()}
    assert tags["sweep_ids"] == runs["avg"].data.tags["sweep_id"]
    assert {
        Path(f.path).name for f in client.list_artifacts(kept.info.run_id, "comparison")
    } == FILES
    assert kept.data.metrics["log_loss/avg"] == runs["avg"].data.metrics["test/log_loss"]

    assert command([f"sweep_id={tags['sweep_ids']}", "out=again", "tracking=none"]) == 0
    said = capsys.readouterr()
    assert "Downloading" not in said.err
    one, other = (read_json(tmp_path / name / "comparison.json") for name in ("out", "again"))
    assert one["leaderboard"] == other["leaderboard"]
    some = [f"tags.sweep_id={tags['sweep_ids']}", "tags.algo=avg", "experiment=srs_eval"]
    assert command([*some, "out=tagged", "tracking=none"]) == 0
    assert read_json(tmp_path / "tagged" / "comparison.json")["baseline"] == "avg"
    assert command(["tags.algo=nobody", "tracking=none"]) == 2
    assert command(["experiment=srs_eval_comparisons", "tracking=none"]) == 2
    assert "no finished run" in capsys.readouterr().err
    assert command(["experiment=absent", "tracking=none"]) == 2
    assert "there are" in capsys.readouterr().err


@pytest.mark.nightly
def test_runs_that_differ_in_nothing_but_when_they_were_made_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from mlflow import MlflowClient

    for name in ("before", "after"):
        assert run_command(["algo=avg", *SMALL, "figures=false", f"hydra.run.dir={name}"]) == 0
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    place = {e.name: e.experiment_id for e in client.search_experiments()}
    ids = {r.info.run_id for r in client.search_runs([place["srs_eval"]])}
    for words in (["before", "after"], ["experiment=srs_eval"]):
        assert command([*words, f"out=of_{len(words)}"]) == 0
        (last, *_) = client.search_runs(
            [{e.name: e.experiment_id for e in client.search_experiments()}["srs_eval_comparisons"]]
        )
        assert set(last.data.tags["parents"].split(",")) == ids
        found = {value for name, value in last.data.tags.items() if name.startswith("parent.")}
        assert found == ids
    capsys.readouterr()


@pytest.mark.slow
def test_a_run_of_the_store_with_a_failed_fit_is_not_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from mlflow import MlflowClient

    words = [*SMALL, "figures=false", "hydra.sweep.dir=runs", "tracking.experiment=study"]
    assert run_command(["-m", "algo=avg,constant", *words]) == 0
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    study = client.get_experiment_by_name("study").experiment_id
    first, _ = client.search_runs([study])
    client.set_terminated(first.info.run_id, "FAILED")
    empty = client.create_run(study, run_name="came to nothing")
    client.set_terminated(empty.info.run_id, "FAILED")
    assert command(["experiment=study", "tracking=none", "out=both"]) == 0
    said = capsys.readouterr().out
    assert "2 runs on" in said
    assert f"came to nothing kept no results and was left out: run {empty.info.run_id}" in said


@pytest.mark.slow
@pytest.mark.usefixtures("_without_images")
def test_results_stay_where_the_tracking_store_cannot_be_used(
    sweep: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(sweep), "out=out", "tracking.uri=http://127.0.0.1:9"]
    assert command(words) == 1
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["scores.parquet", "predictions.parquet", "summary.json"])
def test_a_file_that_was_cut_off_is_named_in_one_line(
    sweep: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(sweep, copied)
    file = copied / "1_constant" / name
    file.write_bytes(file.read_bytes()[:-100])
    assert command([str(copied), "tracking=none", "out=out"]) == 2
    told, advice = capsys.readouterr().err.splitlines()
    assert told.startswith(f"srs_eval: {file}: cannot be read (")
    assert advice == "srs_eval: python -m srs_eval.compare --help lists the options"
    assert not (tmp_path / "out").exists()


def test_mlproject_has_an_entry_point_for_it() -> None:
    project = yaml.safe_load((Path(__file__).parents[1] / "MLproject").read_text("utf-8"))
    entry = project["entry_points"]["compare"]
    assert "srs_eval.compare" in entry["command"]
    assert all("default" in of for name, of in entry["parameters"].items() if name != "runs")
