"""What `python -m srs_eval.compare` makes of runs, and a sweep of its jobs."""

import json
import re
import shutil
from functools import partial
from pathlib import Path

import pytest
from commands import QUIET, SMALL
from commands import run_here as run_command
from mlflow_store import runs_in

from srs_eval.comparison.report import html
from srs_eval.runs.commands import COMMANDS
from srs_eval.runs.words import status

command = partial(status, *COMMANDS["compare"])


def json_of(file):
    return json.loads(file.read_text("utf-8"))


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
    return json_of(Path("out") / "comparison.json")


def test_a_sweep_is_compared_from_its_folder(sweep, capsys):
    found = compared(sweep)
    said = capsys.readouterr().out
    assert "3 runs on synthetic, protocol srs_benchmark: 2 users and " in said
    assert "baseline avg" in said
    losses = {
        file.parent.name.partition("_")[2]: json_of(file)["metrics"]["log_loss"]["mean_users"]
        for file in sweep.glob("*/summary.json")
    }
    means = {of["run"]: of["mean"] for of in found["leaderboard"] if of["weighting"] == "users"}
    assert means == pytest.approx(losses)
    assert [run["when"] for run in found["runs"]] == 2 * ["previous_review"] + ["at_review"]
    assert found["leaders"] == {"previous_review": "avg", "at_review": "moving_avg"}
    assert command([str(sweep), "tracking=none"]) == 0
    assert list(Path().glob("outputs/*/*_compare/report.html"))


def test_runs_are_chosen_by_when_they_predict_and_tables_by_their_labels(sweep, capsys):
    against = ["against_baseline", "against_baseline_majority"]
    for when, asked, names, tables in (
        ("previous_review", "ahead", "runs,leaderboard_users", ["leaderboard_users", "runs"]),
        ("previous_review", "ahead", "against", against),
        ("at_review", "imm", "runs", ["runs"]),
    ):
        found = compared(sweep, f"when={asked}", f"latex={names}", "metric=brier")
        assert {run["when"] for run in found["runs"]} == {when}
        assert found["metric"] == "brier"
        written = Path("out/comparison.tex").read_text("utf-8")
        assert re.findall(r"label\{tab:(\w+)", written) == tables
    assert command([str(sweep), "when=day_before", "tracking=none"]) == 1
    assert "there are no runs" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sweep_with_a_report_writes_the_same_comparison(tmp_path):
    sweep = tmp_path / "sweep"
    assert run_command([*SWEEP, "report=true", f"hydra.sweep.dir={sweep}"]) == 0
    assert {path.name for path in sweep.iterdir()} >= FILES
    found = json_of(sweep / "comparison.json")
    assert found["leaderboard"] == compared(sweep)["leaderboard"]


@pytest.mark.slow
def test_a_comparison_is_a_run_of_its_own_that_leads_to_the_runs_compared(tmp_path, capsys):
    words = ["-m", "algo=avg,constant", *SMALL, "figures=false", "hydra.sweep.dir=runs"]
    assert run_command(words) == 0
    assert command(["runs", "out=tracked"]) == 0
    assert "this comparison" in capsys.readouterr().out
    client, (kept,) = runs_in(tmp_path, "srs_eval_comparisons")
    runs = {run.data.tags["label"]: run for run in runs_in(tmp_path)[1]}
    tags, avg = kept.data.tags, runs["avg"]
    assert {tags["parent.avg"], tags["parent.constant"]} == {r.info.run_id for r in runs.values()}
    assert tags["sweep_ids"] == avg.data.tags["sweep_id"]
    files = client.list_artifacts(kept.info.run_id, "comparison")
    assert {Path(file.path).name for file in files} == FILES
    assert kept.data.metrics["log_loss/avg"] == avg.data.metrics["test/log_loss"]

    found = compared(f"sweep_id={tags['sweep_ids']}")
    assert found["leaderboard"] == json_of(Path("tracked/comparison.json"))["leaderboard"]
    assert "Downloading" not in capsys.readouterr().err
    some = [f"tags.sweep_id={tags['sweep_ids']}", "tags.algo=avg", "experiment=srs_eval"]
    assert compared(*some)["baseline"] == "avg"
    none = "no finished run"
    mistakes = {"tags.algo=nobody": none, "experiment=srs_eval_comparisons": none}
    for word, said in (mistakes | {"experiment=absent": "there are"}).items():
        assert command([word, "tracking=none"]) == 1
        assert said in capsys.readouterr().err

    # a run with a failed fit is not passed over
    client.set_terminated(avg.info.run_id, "FAILED")
    empty = client.create_run(avg.info.experiment_id, run_name="came to nothing")
    client.set_terminated(empty.info.run_id, "FAILED")
    assert len(compared("experiment=srs_eval")["runs"]) == 1
    said = f"came to nothing kept no results and was left out: run {empty.info.run_id}"
    assert said in capsys.readouterr().out


@pytest.mark.slow
def test_results_stay_where_the_tracking_store_cannot_be_used(sweep, capsys):
    assert command([str(sweep), "out=out", "tracking.uri=http://127.0.0.1:9"]) == 1
    assert {path.name for path in Path("out").iterdir()} == FILES
    assert "Traceback" not in capsys.readouterr().err
