"""Published scores of each user are read, and give the published means and intervals."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from srs_eval.comparison.by_users import superiority_matrix
from srs_eval.comparison.inputs import read_runs
from srs_eval.comparison.pairing import pair
from srs_eval.comparison.published import is_published, read_published
from srs_eval.comparison.verdict import Verdict
from srs_eval.errors import ConfigError
from srs_eval.results import files
from srs_eval.results.files import SCORES
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
    """Mean, half-width and unit of the last digit of the half-width, of each metric."""
    first_edition = TABLE.read_text(encoding="utf-8").partition("\n## 2.")[0]
    (row,) = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in first_edition.splitlines()
        if line.startswith(f"| {model} |")
    ]
    for name, cell in zip(METRICS, row[2:], strict=False):
        found = re.fullmatch(r"\**([\d.]+)±([\d.]+)\**", cell)
        assert found, cell
        yield name, *(found[n] for n in (1, 2))


def unit(number):
    return 10.0 ** -len(number.partition(".")[2])


@pytest.fixture(scope="module")
def published():
    paired = pair(read_published(RESULTS))
    begun = time.perf_counter()
    found = {
        name: Verdict(paired, name, "higher" if name == "auc" else "lower").leaderboard
        for name in METRICS
    }
    return [run.name for run in paired.runs], found, time.perf_counter() - begun


@needs_results
@pytest.mark.parametrize("model", MODELS)
def test_means_and_intervals_are_the_printed_ones(model, published):
    names, of_metric, _ = published
    number = names.index(MODELS[model])
    for metric, mean, half in printed(model):
        board = of_metric[metric]
        assert abs(board.mean[number] - float(mean)) <= 0.5001 * unit(mean), metric
        # Theirs is of random resamples, and ours allows for skewness.
        width = (board.hi[number] - board.lo[number]) / 2
        assert abs(width - float(half)) < 2 * unit(half), metric


@needs_results
def test_pairs_are_the_published_ones(published):
    names, found, _ = published
    board = found["log_loss"]
    scores = pair(read_published(RESULTS)).scores("log_loss")
    shares = superiority_matrix(scores)
    expected = {  # difference to FSRS-5, and for how many per cent of users FSRS-5 is better
        "FSRS-4.5": (-0.0066, 83.3),
        "DASH": (-0.0124, 74.8),
        "AVG": (-0.0387, 83.1),
        "FSRSv4": (None, 92.1),
        "FSRSv3": (None, 95.9),
        "ACT-R": (None, 88.0),
        "SM2": (None, 99.6),
        "Ebisu-v2": (None, 96.1),
    }
    ours = names.index("FSRS-5")
    for name, (difference, share) in expected.items():
        theirs = names.index(name)
        assert round(100 * shares[ours, theirs], 1) == pytest.approx(share, abs=0.11), name
        if difference is not None:
            assert round(board.pairs[ours][theirs].mean, 4) == difference, name


@needs_results
def test_a_model_in_both_formats_is_read_once_and_alike():
    runs = read_published(RESULTS)
    assert [run.name for run in runs].count("SM2") == 1
    (lines,) = read_published(RESULTS / "SM2.jsonl")
    table = next(run for run in runs if run.name == "SM2")
    users = list(lines.rows)
    for metric in (*METRICS, "rmse", "ici"):
        np.testing.assert_allclose(lines.values(metric, users), table.values(metric, users))


def write_lines(path, users, losses):
    lines = [
        json.dumps({"metrics": {"LogLoss": loss, "AUC": None}, "user": user, "size": size})
        for (user, size), loss in zip(users.items(), losses, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")


def test_a_file_is_recognised_by_what_is_in_it(tmp_path, make_run):
    write_lines(tmp_path / "Model.jsonl", {1: 10, 2: 20}, [0.3, 0.4])
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    assert is_published(tmp_path / "Model.jsonl")
    assert not is_published(tmp_path / "other.jsonl")
    assert not is_published(make_run("a") / SCORES)
    (run,), _ = read_runs([tmp_path / "Model.jsonl"])
    assert run.name == "Model"
    assert run.values("log_loss", [2, 1, 3]).tolist()[:2] == [0.4, 0.3]
    assert np.isnan(run.values("auc", [1, 2])).all()


def test_a_yardstick_counts_only_for_the_users_of_the_runs(tmp_path, make_run):
    run = load_run(make_run("mine"))
    sizes = dict(run.reviews)
    write_lines(tmp_path / "Theirs.jsonl", {**sizes, 99: 5}, [0.5] * 13)
    yardstick = read_published(tmp_path / "Theirs.jsonl")
    paired = pair([run], yardstick)
    assert len(paired.users) == 12
    assert "(Theirs) do not say which reviews" in paired.notes[0]
    write_lines(tmp_path / "Theirs.jsonl", {**sizes, 3: 1}, [0.5] * 12)
    with pytest.raises(ConfigError, match=r"of user 3, by number|of user 3: "):
        pair([run], read_published(tmp_path / "Theirs.jsonl"))


@pytest.mark.parametrize(
    ("model", "when"),
    [
        ("RWKV-P", "at_review"),
        ("RWKV", "previous_review"),
        ("MOVING-AVG", "at_review"),
        ("AVG", "previous_review"),
        ("FSRS-6-recency", "previous_review"),
        ("my-model", "unknown"),
    ],
)
def test_published_models_predict_when_that_is_known(tmp_path, model, when):
    row = {"metrics": {"LogLoss": 0.3}, "user": 1, "size": 10}
    (tmp_path / f"{model}.jsonl").write_text(json.dumps(row))
    (run,) = read_published(tmp_path)
    assert run.when == when


def test_published_scores_can_say_when_they_were_predicted(tmp_path):
    rows = [
        {"metrics": {"LogLoss": 0.3}, "user": user, "size": 10, "when": when}
        for user, when in enumerate(("imm", "at_review"))
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    columns = {
        "model": ["a"] * 2 + ["b"],
        "user": [1, 2, 1],
        "size": [5] * 3,
        "log_loss": [0.3] * 3,
    }
    files.write_table(
        tmp_path / "others.parquet", pa.table(columns | {"when": ["ahead", "ahead", "day_before"]})
    )
    found = {run.name: run.when for run in read_published(tmp_path)}
    assert found == {"mine": "at_review", "a": "previous_review", "b": "day_before"}
    path.write_text("\n".join(json.dumps(row | {"when": None}) for row in rows))
    assert {run.when for run in read_published(path)} == {"unknown"}
    path.write_text("\n".join(json.dumps(row | {"when": "later"}) for row in rows))
    with pytest.raises(ConfigError, match="previous_review"):
        read_published(path)


def test_published_models_are_chosen_by_our_names_or_globs(tmp_path):
    for model in ("FSRS-6", "FSRS-4.5", "FSRSv3", "LSTM", "Ebisu-v2", "SM2", "SM2-trainable"):
        write_lines(tmp_path / f"{model}.jsonl", {1: 10}, [0.3])

    def chosen(*models):
        return [run.name for run in read_published(tmp_path, models)]

    assert chosen("lstm", "fsrs6", "fsrs45", "fsrs3") == ["LSTM", "FSRS-6", "FSRS-4.5", "FSRSv3"]
    assert chosen("sm2", "FSRS-6") == ["SM2", "FSRS-6"]
    assert set(chosen("fsrs*", "*trainable", "Ebisu*")) == {
        *("FSRS-6", "FSRS-4.5", "FSRSv3", "SM2-trainable", "Ebisu-v2")
    }
    with pytest.raises(ConfigError, match=r"no model gpt, fsrs9; there are .*SM2-trainable"):
        chosen("gpt", "lstm", "fsrs9")
