"""Published scores of each user, and what `python -m srs_eval.compare` makes of runs and scores."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import QUIET, SMALL
from commands import run_here as run_command
from mlflow_store import runs_in

from srs_eval.commands.compare import command
from srs_eval.comparison.compare import compare
from srs_eval.comparison.entry import read_entry
from srs_eval.comparison.inputs import read_runs
from srs_eval.comparison.pairing import pair
from srs_eval.comparison.published import is_published, read_published
from srs_eval.comparison.report import html
from srs_eval.errors import ConfigError
from srs_eval.results.files import SCORES, read_json


def write_lines(path, users, losses, **further):
    lines = [
        json.dumps(
            {"metrics": {"LogLoss": loss, "AUC": None}, "user": user, "size": size, **further}
        )
        for (user, size), loss in zip(users.items(), losses, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_file_is_recognised_by_what_is_in_it(tmp_path, make_run):
    lines = write_lines(tmp_path / "Model.jsonl", {1: 10, 2: 20}, [0.3, 0.4])
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    columns = {"model": ["x", "y", "x"], "user": [1, 1, 2], "size": [5, 6, 7]}
    table = tmp_path / "table.parquet"
    pd.DataFrame(columns | {"log_loss": [0.3, 0.4, 0.5]}).to_parquet(table)
    write_lines(tmp_path / "Model.txt", {1: 10}, [0.3])
    (tmp_path / "folder.jsonl").mkdir()
    found = {path.name for path in tmp_path.iterdir() if is_published(path)}
    assert found == {"Model.jsonl", "table.parquet"}
    assert not is_published(make_run("a") / SCORES)
    (run,), _ = read_runs([lines])
    assert (run.name, run.reviews) == ("Model", {1: 10, 2: 20})
    assert run.values("log_loss", [2, 1, 3]).tolist()[:2] == [0.4, 0.3]
    assert np.isnan(run.values("auc", [1, 2])).all()
    first, second = read_published(table)
    assert (first.name, first.reviews, second.name) == ("x", {1: 5, 2: 7}, "y")
    assert first.values("log_loss", [1, 2]).tolist() == [0.3, 0.5]


def test_of_a_folder_tables_are_read_first_and_can_say_when_models_predict(tmp_path):
    write_lines(tmp_path / "a.jsonl", {1: 10}, [0.3])
    columns = {"model": ["a", "a", "b"], "user": [1, 2, 1], "size": 5, "log_loss": 0.2}
    table = pd.DataFrame(columns | {"when": ["ahead", "ahead", "day_before"]})
    table.to_parquet(tmp_path / "z.parquet")
    found = {run.name: run for run in read_published(tmp_path)}
    assert found["a"].values("log_loss", [1]).tolist() == [0.2]
    assert (found["a"].when, found["b"].when) == ("previous_review", "day_before")
    (tmp_path / "about.txt").touch()
    runs, _ = read_runs([tmp_path])
    assert {run.name for run in runs} == {"a", "b"}


def test_a_yardstick_counts_only_for_the_users_of_the_runs(tmp_path, make_run):
    run = read_entry(make_run("mine"))
    sizes = dict(run.reviews)
    theirs = write_lines(tmp_path / "Theirs.jsonl", {**sizes, 99: 5}, [0.5] * 13)
    yardstick = read_published(theirs)
    paired = pair([run], yardstick)
    assert (paired.users, pair([], yardstick).users) == (tuple(sizes), (*sizes, 99))
    assert "(Theirs) do not say which reviews" in paired.notes[0]


def test_published_models_predict_when_that_is_known_or_stated(tmp_path, transcript):
    def told_by(model, *stated):
        stated = dict(word.split("=") for word in stated)
        when = {key: value or None for key, value in stated.items()}
        lines = write_lines(tmp_path / f"{model}.jsonl", {1: 10, 2: 10}, [0.3, 0.4], **when)
        return "".join(f"{run.when}\n" for run in read_published(lines))

    transcript("published_when", told_by)


def test_published_models_are_chosen_by_our_names_or_globs(tmp_path):
    for model in ("FSRS-6", "FSRS-4.5", "FSRSv3", "LSTM", "Ebisu-v2", "SM2", "SM2-trainable"):
        write_lines(tmp_path / f"{model}.jsonl", {1: 10}, [0.3])
    fsrs = ["FSRS-4.5", "FSRS-6", "FSRSv3"]
    for models, expected in (
        (["lstm", "fsrs6", "fsrs45", "fsrs3"], ["LSTM", "FSRS-6", "FSRS-4.5", "FSRSv3"]),
        (["sm2", "FSRS-6"], ["SM2", "FSRS-6"]),
        (["sm2_trainable", "lstm_curves"], ["SM2-trainable", "LSTM"]),
        (["fsrs*", "*trainable", "Ebisu*"], [*fsrs, "SM2-trainable", "Ebisu-v2"]),
    ):
        assert [run.name for run in read_published(tmp_path, models)] == expected


def test_scores_of_a_comparison_have_the_bounds_of_their_metric(make_run):
    runs = [read_entry(make_run(name, blur=blur)) for name, blur in (("a", 0.1), ("b", 0.4))]
    found = [compare(runs, metric=name).bounds for name in ("auc", "log_loss")]
    assert found == [(0, 1), (0, np.inf)]


def test_results_of_a_model_as_it_is_are_found_under_names_with_flags(tmp_path):
    for flags in ("-short", "-short-secs", "-short-recency", "-default-short", "-short-deck"):
        write_lines(tmp_path / f"FSRS-6{flags}.jsonl", {1: 10}, [0.3])
    names = [run.name for run in read_published(tmp_path, ["fsrs6"])]
    assert names == ["FSRS-6-short-secs", "FSRS-6-short"]
    with pytest.raises(ConfigError, match="has no model fsrs7"):
        read_published(tmp_path, ["fsrs7"])


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
    assert command([str(sweep), "when=day_before", "tracking=none"]) == 2
    told = capsys.readouterr().err
    assert "previous_review (2)" in told
    assert "at_review (1)" in told


@pytest.mark.slow
def test_a_sweep_with_a_report_writes_the_same_comparison(tmp_path):
    sweep = tmp_path / "sweep"
    assert run_command([*SWEEP, "report=true", f"hydra.sweep.dir={sweep}"]) == 0
    assert {path.name for path in (sweep / "comparison").iterdir()} == FILES
    found = json.loads((sweep / "comparison" / "comparison.json").read_text())
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


@pytest.mark.slow
def test_results_stay_where_the_tracking_store_cannot_be_used(sweep, capsys):
    assert command([str(sweep), "out=out", "tracking.uri=http://127.0.0.1:9"]) == 1
    assert {path.name for path in Path("out").iterdir()} == FILES
    assert "Traceback" not in capsys.readouterr().err
