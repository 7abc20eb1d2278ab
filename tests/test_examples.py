"""Each example does what its page says."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import watch
from anki_files import ROWS, collection, opened
from clanki import TABLES, ClankiCollection
from evidence import LEARNED, either, first_alarm, log_evidence, mixture, noise
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from scipy.integrate import quad
from scipy.stats import halfnorm
from simulated_app import log_of

import srs_eval as se
from srs_eval.errors import ReviewLogError

EXAMPLES = Path(__file__).parents[1] / "examples"
LEVEL = 0.01
QUESTION = watch.Question("champion", "challenger", 0.9, tolerance=0.01)


def histories(rng, n, days=365, users=40, common=0.05, shift=0.0, since=0):
    """Simulate days of an app: mean recall less predictions, and its variance if independent.

    A whole day is easier or harder for everyone (`common`), and for a user; there are fewer reviews
    at weekends; from day `since` on, recall is `shift` higher.
    """
    for _ in range(n):
        size = (days, users)
        reviews = rng.poisson(np.where(np.arange(days) % 7 < 5, 10, 3)[:, None], size) + 1
        effect = rng.normal(0, common, days)[:, None] + rng.normal(0, 0.1, size)
        p = rng.uniform(0.85, 0.95, size)
        true = np.clip(p + np.clip(effect, -0.05, 0.05), 0, 1)
        true = np.clip(true + np.where(np.arange(days) >= since, shift, 0)[:, None], 0, 1)
        residual = (rng.binomial(reviews, true) - reviews * p).sum(axis=1)
        count = reviews.sum(axis=1)
        yield residual / count, (reviews * p * (1 - p)).sum(axis=1) / count**2


def test_closed_forms_of_the_evidence_are_those_of_the_definition():
    for total, spread in ((0.0, 1.0), (5.0, 3.0), (-4.0, 20.0), (30.0, 40.0)):
        direct = quad(
            lambda b, s=total, v=spread: np.exp(b * s - b * b * v / 2) * halfnorm.pdf(b, scale=0.5),
            0,
            np.inf,
        )[0]
        assert mixture(np.array(total), np.array(spread)) == pytest.approx(np.log(direct))
    assert either(np.log([1.0]), np.log([4.0])) == pytest.approx(np.log([2.5]))
    z = np.linspace(-60, 60, 100_001)
    assert (np.exp(z - z**2 / 6) <= 1 + z + z**2 / 3 + 1e-12).all()


def test_the_noise_of_a_day_is_bounded_by_earlier_days_only():
    independent = np.array([1.0, 2.0, 1.0, 1.0, 2.0])
    bound = noise(np.array([1.0, 0.0, 3.0, 5.0, 5.0]), independent)
    assert np.isnan(bound[:2]).all()
    # differences 1, 9 and 4, expected 3, 3 and 2: at least as much as independent reviews
    np.testing.assert_allclose(bound[2:], np.array([1.0, 5 / 3, 2 * 16 / 9]) * 1.25)
    changed = noise(np.array([1.0, 0.0, 3.0, 5.0, 99.0]), independent)
    np.testing.assert_array_equal(changed, bound)


def test_evidence_grows_from_day_to_day_and_is_the_same_whenever_it_is_looked_at():
    ((x, independent),) = histories(np.random.default_rng(5), 1, 60, shift=0.03)
    whole = log_evidence(x, independent)
    assert not whole[:LEARNED].any()
    for until in (0, 3, LEARNED, LEARNED + 1, 30, 59):
        part = log_evidence(x[:until], independent[:until])
        np.testing.assert_allclose(part, whole[:until], atol=1e-12)
    z = (x / np.sqrt(noise(x, independent)))[LEARNED:]
    since = [z[begin:] for begin in range(0, len(z), 7)]
    weighed = [
        np.exp(mixture(one.sum(), np.sum(one**2 / 3 + 2 / 3))) / (week * (week + 1))
        for week, one in enumerate(since, 1)
    ]
    assert whole[-1] == pytest.approx(np.log(sum(weighed) + 1 / (len(since) + 1)))


def test_alarms_without_a_difference_are_as_rare_as_promised():
    alarms, below = [], 0.03 * (np.sin(np.arange(365) / 15) - 1) - 0.1 * (np.arange(365) > 200)
    for x, independent in histories(np.random.default_rng(11), 200, users=15):
        log_e = either(log_evidence(x, independent), log_evidence(-x, independent))
        alarms.append(first_alarm(log_e, LEVEL) is not None)
        # means that swing below 0, and fall at once
        assert first_alarm(log_evidence(x + below, independent), LEVEL) is None
    assert np.mean(alarms) <= LEVEL


@pytest.mark.parametrize(("since", "within"), [(0, 45), (180, 60)])
def test_a_drift_raises_an_alarm_soon_whenever_it_begins(since, within):
    days = histories(np.random.default_rng(3), 20, 300, users=60, shift=0.04, since=since)
    for x, independent in days:
        assert since < first_alarm(log_evidence(x, independent), LEVEL) <= since + within


def days_of(frame):
    return watch.days_of(se.source(frame, p=QUESTION.columns), QUESTION)


def test_each_review_counts_on_its_day_or_is_left_out_for_a_reason():
    times = pd.to_datetime(
        ["2024-03-01T10:00Z", "2024-03-02T10:00Z", "2024-03-02T11:00Z", "2024-03-04T10:00Z"]
    )
    one = pd.DataFrame({"card": 1, "rating": [3, 3, 1, 1], "time": times, "user": "a"})
    one["champion"], one["challenger"] = [0.9, 0.9, 0.5, 0.8], [0.9, 0.95, 0.5, 0.7]
    # begins a day later; its second review lacks one of the predictions
    other = one.iloc[1:].assign(user="b", challenger=[0.9, 0.5, np.nan])
    days, left_out = days_of(pd.concat([one, other]))
    assert left_out == {"first": 2, "same_day": 2, "without_prediction": 1}
    dates = pd.to_datetime(days["day"], unit="D").dt.date.astype(str)
    assert dates.tolist() == ["2024-03-02", "2024-03-04"]
    first, second = days.to_dict("records")
    assert (first["users"], first["reviews"], first["scheduled"]) == (1, 1, 1)
    assert first["residual"] == pytest.approx(0.1)
    assert first["gain"] == pytest.approx(np.log(0.95 / 0.9))
    assert (second["reviews"], second["scheduled"]) == (1, 0)  # 0.8 is far from 0.9
    assert second["gain"] == pytest.approx(np.log(0.3 / 0.2))
    a, b = np.log(0.7 / 0.8), np.log(0.3 / 0.2)
    assert second["gain_noise"] == pytest.approx(0.75 * a**2 + 0.25 * b**2)


def alarms(**options):
    days, _ = days_of(log_of(np.random.default_rng(4), **options))
    tests = watch.judged(days, QUESTION)
    return {name for name, test in tests.items() if test.reached is not None}


def test_alarms_are_of_planted_differences_only():
    assert alarms(users=6, better=0.0) == set()
    assert watch.CALIBRATION in alarms(better=0.0, bias=0.04)
    assert alarms() - {watch.CALIBRATION} == {watch.BETTER}


@pytest.fixture
def night(tmp_path, monkeypatch):
    """Watch a simulated app in an empty folder; return the status and what is printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'm.db'}")
    log_of(np.random.default_rng(4)).to_parquet("log.parquet")

    def watched(capsys, until, *words):
        names = ["--champion", "champion", "--challenger", "challenger", "--retention", "0.9"]
        status = watch.main(
            ["log.parquet", "user=user", *names, "--tolerance", "0.01", "--until", until, *words]
        )
        return status, json.loads(capsys.readouterr().out)

    return watched


@pytest.mark.slow
def test_the_alias_of_the_watch_moves_once_and_only_on_proof(night, tmp_path, capsys):
    client = MlflowClient(f"sqlite:///{tmp_path / 'm.db'}")
    client.create_registered_model("recall")
    for number, alias in (("1", "champion"), ("2", "challenger")):
        client.create_model_version("recall", source=str(tmp_path))
        client.set_registered_model_alias("recall", alias, number)

    def champion():
        return str(client.get_model_version_by_alias("recall", "champion").version)

    promote = ["--promote", "recall"]
    status, first = night(capsys, "2026-03-20", *promote)
    assert (status, first["days"], first["promotion"], champion()) == (0, 17, None, "1")
    status, would = night(capsys, "2026-04-20", *promote, "--dry-run")
    assert (status, would["promotion"]["after"], champion()) == (watch.ALARM, "2", "1")
    assert night(capsys, "2026-03-20", "--dry-run")[1]["days"] == 17  # nothing was written
    status, last = night(capsys, "2026-04-20", *promote)
    assert (status, champion(), last["alarms"]) == (watch.ALARM, "2", [watch.BETTER])
    tags = [client.get_model_version("recall", version).tags["promotion"] for version in "12"]
    assert tags == [last["promotion"]["reason"]] * 2
    # once: whoever moves it back has a reason
    client.set_registered_model_alias("recall", "champion", "1")
    assert night(capsys, "2026-04-25", *promote)[1]["promotion"] == last["promotion"]
    assert champion() == "1"
    with pytest.raises(MlflowException):
        night(capsys, "2026-04-25", "--promote", "memory", "--out", "other")
    # what is asked stays the same
    with pytest.raises(ValueError, match="begin another watch"):
        night(capsys, "2026-04-25", "--level", "0.05")
    (experiment,) = client.search_experiments(filter_string="name = 'watch'")
    runs = client.search_runs([experiment.experiment_id])
    (parent,) = {run.data.tags.get("mlflow.parentRunId") for run in runs} - {None}
    curve = client.get_metric_history(parent, f"evidence/{watch.BETTER}")
    assert [point.step for point in curve] == list(range(len(curve)))
    assert len(runs) == 4


def test_a_day_of_the_watch_stays_as_it_was(tmp_path):
    days, _ = days_of(log_of(np.random.default_rng(3), users=6))
    path, last = tmp_path / "watch.json", int(days["day"].max())
    record = watch.Record.read(path, QUESTION)
    assert record.add(days, last - 10) == len(days) - 11
    record.write(path)
    again = watch.Record.read(path, QUESTION)
    rewritten = days.assign(residual=days["residual"] + (days.index == 4))
    assert again.add(rewritten, None) == 10
    pd.testing.assert_frame_equal(again.days, days.iloc[:-1], check_dtype=False)
    assert again.add(days, None) == 0


def test_predictions_of_clanki_are_those_that_did_not_know_the_answer(tmp_path):
    """Of a review the newest, and none of a final fit, but of frozen weights."""
    log, cache = collection(tmp_path / "collection.anki2"), tmp_path / "cache.sqlite"
    stored = {
        "fsrs7": [(0, 0.1, "final_fit"), (1, 0.2, "test_fold"), (2, 0.3, "post_optimization")],
        "rwkv_curve": [(0, 0.5, "final_fit"), (0, 0.6, "final_fit"), (9, 0.7, "final_fit")],
    }
    columns = "revlog_id, prediction, sample_role, updated_at, fold_index, source"
    with opened(cache) as database:
        for name, rows in stored.items():
            database.execute(f"create table {TABLES[name]} ({columns})")
            for age, (review, p, role) in enumerate(rows):
                values = (ROWS[review][0] if review < len(ROWS) else 9, p, role, age, 0, "a")
                database.execute(f"insert into {TABLES[name]} values (?, ?, ?, ?, ?, ?)", values)
    source = ClankiCollection(log, predictions=cache)
    reviews = source.read("collection")
    assert reviews.recorded_names == ("fsrs7", "rwkv_curve")
    nothing = np.nan
    expected = [[nothing, 0.6], [0.2, nothing], [0.3, nothing], [nothing, nothing]]
    np.testing.assert_array_equal(reviews.recorded, expected)
    with opened(cache) as database:
        database.execute(f"update {TABLES['fsrs7']} set prediction = 1.5")
    with pytest.raises(ReviewLogError):
        source.read("collection")
