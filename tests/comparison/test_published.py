"""Published scores of each user are read, and give the published means and intervals."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from srs_eval.comparison.compare import compare
from srs_eval.comparison.inputs import read_runs
from srs_eval.comparison.pairing import pair
from srs_eval.comparison.verdict import Verdict
from srs_eval.errors import ConfigError
from srs_eval.results.files import SCORES
from srs_eval.results.published import is_published, read_published
from srs_eval.results.run import load_run

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
RESULTS = SHARED / "data" / "srs-benchmark-results"
TABLE = SHARED / "reference" / "leaderboard.md"
needs_results = pytest.mark.skipif(
    not (RESULTS.is_dir() and TABLE.is_file()), reason="the published results are not here"
)
# What the printed table calls a model, and what the results do.
MODELS = {
    "FSRS v4": "FSRSv4",
    "AVG": "AVG",
    "ACT-R": "ACT-R",
    "FSRS v3": "FSRSv3",
    "Ebisu v2": "Ebisu-v2",
    "NN-17": "NN-17",
    "GRU-P": "GRU-P",
    "SM-2": "SM2",
}
METRICS = ("log_loss", "rmse_bins", "auc")


def printed(model):
    """Mean and half-width of each metric."""
    first_edition = TABLE.read_text(encoding="utf-8").partition("\n## 2.")[0]
    (row,) = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in first_edition.splitlines()
        if line.startswith(f"| {model} |")
    ]
    cells = zip(METRICS, row[2:], strict=False)
    return {name: cell.strip("*").split("±") for name, cell in cells}


def unit(number):
    return 10.0 ** -len(number.partition(".")[2])


@needs_results
def test_means_and_intervals_are_the_printed_ones():
    paired = pair(read_published(RESULTS))
    names = [run.name for run in paired.runs]
    for metric in METRICS:
        board = Verdict(paired, metric, "higher" if metric == "auc" else "lower").leaderboard
        for model, name in MODELS.items():
            number, (mean, half) = names.index(name), printed(model)[metric]
            assert abs(board.mean[number] - float(mean)) <= 0.5001 * unit(mean), (name, metric)
            # Theirs is of random resamples, and ours allows for skewness.
            width = (board.hi[number] - board.lo[number]) / 2
            assert abs(width - float(half)) < 2 * unit(half), (name, metric)


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
    run = load_run(make_run("mine"))
    sizes = dict(run.reviews)
    theirs = write_lines(tmp_path / "Theirs.jsonl", {**sizes, 99: 5}, [0.5] * 13)
    yardstick = read_published(theirs)
    paired = pair([run], yardstick)
    assert (paired.users, pair([], yardstick).users) == (tuple(sizes), (*sizes, 99))
    assert "(Theirs) do not say which reviews" in paired.notes[0]


@pytest.mark.parametrize(
    ("model", "stated", "when"),
    [
        ("RWKV-P", {}, "at_review"),
        ("RWKV", {}, "previous_review"),
        ("MOVING-AVG", {}, "at_review"),
        ("AVG", {}, "previous_review"),
        ("FSRS-6-recency", {}, "previous_review"),
        ("my-model", {}, "unknown"),
        ("my-model", {"when": "imm"}, "at_review"),
        ("AVG", {"when": "at_review"}, "at_review"),
        ("my-model", {"when": None}, "unknown"),
    ],
)
def test_published_models_predict_when_that_is_known_or_stated(tmp_path, model, stated, when):
    lines = write_lines(tmp_path / f"{model}.jsonl", {1: 10, 2: 10}, [0.3, 0.4], **stated)
    assert [run.when for run in read_published(lines)] == [when]


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
    runs = [load_run(make_run(name, blur=blur)) for name, blur in (("a", 0.1), ("b", 0.4))]
    found = [compare(runs, metric=name).bounds for name in ("auc", "log_loss")]
    assert found == [(0, 1), (0, np.inf)]


def test_results_of_a_model_as_it_is_are_found_under_names_with_flags(tmp_path):
    for flags in ("-short", "-short-secs", "-short-recency", "-default-short", "-short-deck"):
        write_lines(tmp_path / f"FSRS-6{flags}.jsonl", {1: 10}, [0.3])
    names = [run.name for run in read_published(tmp_path, ["fsrs6"])]
    assert names == ["FSRS-6-short-secs", "FSRS-6-short"]
    with pytest.raises(ConfigError, match="has no model fsrs7"):
        read_published(tmp_path, ["fsrs7"])


@pytest.mark.parametrize(
    "odd",
    [
        *({"metrics": value} for value in ("x", [], [1], {"LogLoss": []}, {"LogLoss": "x"})),
        *({"user": value} for value in (None, True, 1.5, [1], {}, 2)),
        *({"size": value} for value in (None, True, "x", 0, -1, 1.5, np.nan, [1])),
        *({"traits": value} for value in (5, [[]])),
    ],
    ids=str,
)
def test_lines_that_are_no_scores_are_refused_by_file(tmp_path, odd):
    row = {"metrics": {"LogLoss": 0.3}, "user": 1, "size": 10}
    lines = [row | {"user": 2}, row | odd]
    file = tmp_path / "Model.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(ConfigError, match=r"Model\.jsonl"):
        read_published(file)
