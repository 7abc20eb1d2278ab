"""Days, their record, and what is decided on them."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import write
from mlflow import MlflowClient

from srs_eval.data.frame import ReviewFrame
from srs_eval.data.table_options import Columns
from srs_eval.errors import ConfigError
from srs_eval.watch.command import command
from srs_eval.watch.days import FIRST, MISSING, SAME_DAY, Question, watched_days
from srs_eval.watch.judge import BETTER, CALIBRATION, WORSE, judge
from srs_eval.watch.record import continued, read_record, write_record

ASKED = Question("ours", "theirs", 0.9, near=0.05, tolerance=0.01)


def frame_of(rng, users=6, days=60, cards=30, better=0.0, bias=0.0):
    """Invent reviews of each card on every second day; `theirs` knows more, `ours` is biased."""
    user, day, card = np.indices((users, days, cards)).reshape(3, -1)
    user, day, card = (each[day % 2 == card % 2] for each in (user, day, card))
    noise = rng.normal(0, better, len(card))
    true = np.clip(rng.uniform(0.87, 0.93, len(card)) + noise, 0.02, 0.98)
    since = pd.to_timedelta(86400 * day + 36000 + 60 * card, "s")
    return pd.DataFrame(
        {
            **{"user": user, "card": card, "rating": np.where(rng.random(len(card)) < true, 3, 1)},
            "time": pd.Timestamp("2024-03-01", tz="UTC") + since,
            **{"ours": np.clip(true - noise + bias, 0, 1), "theirs": true},
        }
    )


def source_of(frame):
    return ReviewFrame(frame, Columns(user="user", p=("ours", "theirs")))


def test_each_review_counts_on_its_day_or_is_left_out_for_a_reason():
    times = pd.to_datetime(
        ["2024-03-01T10:00Z", "2024-03-02T10:00Z", "2024-03-02T11:00Z", "2024-03-04T10:00Z"]
    )
    one = pd.DataFrame({"card": 1, "rating": [3, 3, 1, 1], "time": times, "user": "a"})
    one["ours"], one["theirs"] = [0.9, 0.9, 0.5, 0.8], [0.9, 0.95, 0.5, 0.7]
    # begins a day later; its second review lacks one of the predictions
    other = one.iloc[1:].assign(user="b", theirs=[0.9, 0.5, np.nan])
    found = watched_days(source_of(pd.concat([one, other])), ASKED)
    assert found.left_out == {FIRST: 2, SAME_DAY: 2, MISSING: 1}
    dates = pd.to_datetime(found.days["day"], unit="D").dt.date.astype(str)
    assert dates.tolist() == ["2024-03-02", "2024-03-04"]
    first, second = found.days.to_dict("records")
    assert (first["users"], first["reviews"], first["near"]) == (1, 1, 1)
    assert first["residual"] == pytest.approx(0.1)
    assert first["gain"] == pytest.approx(np.log(0.95 / 0.9))
    assert (second["reviews"], second["near"]) == (1, 0)  # 0.8 is not near 0.9
    assert second["gain"] == pytest.approx(np.log(0.3 / 0.2))
    a, b = np.log(0.7 / 0.8), np.log(0.3 / 0.2)
    assert second["gain_noise"] == pytest.approx(0.75 * a**2 + 0.25 * b**2)


def test_what_cannot_be_watched_is_refused():
    frame = frame_of(np.random.default_rng(1), 2, 4)
    with pytest.raises(ConfigError):
        watched_days(source_of(frame), Question("mine"))
    frame["day"] = 1
    without_dates = ReviewFrame(frame, Columns(user="user", day="day", time=None, p="ours"))
    with pytest.raises(ConfigError):
        watched_days(without_dates, Question("ours"))


@pytest.fixture(scope="module")
def calm():
    return watched_days(source_of(frame_of(np.random.default_rng(3))), ASKED)


def test_a_day_that_was_seen_stays_as_it_was_and_the_question_too(tmp_path, calm):
    record = read_record(tmp_path, ASKED)
    assert record.days.empty
    last = int(calm.days["day"].max())
    record, new, changed = continued(record, calm, last - 10)
    assert (len(record.days), new, changed) == (len(calm.days) - 11, len(calm.days) - 11, 0)
    write_record(tmp_path, record)
    again = read_record(tmp_path, ASKED)
    pd.testing.assert_frame_equal(again.days, record.days, check_dtype=False)
    rewritten = calm.days.assign(residual=calm.days["residual"] + (calm.days.index == 4))
    again, new, changed = continued(again, type(calm)(rewritten, {}, 6), None)
    assert (new, changed) == (10, 1)
    kept = pd.concat([record.days, calm.days.iloc[-11:-1]], ignore_index=True)
    pd.testing.assert_frame_equal(again.days, kept, check_dtype=False)
    # nothing new on the same night
    assert continued(again, calm, None)[1:] == (0, 0)
    with pytest.raises(ConfigError):
        read_record(tmp_path, Question("ours", "theirs", 0.8, tolerance=0.01))
    for text in ("{", "[]", json.dumps({"version": 2})):
        (tmp_path / "watch.json").write_text(text)
        with pytest.raises(ConfigError):
            read_record(tmp_path, ASKED)


def test_nothing_is_found_where_there_is_nothing_and_planted_differences_are(calm):
    assert judge(calm.days, ASKED).alarms == ()
    rng = np.random.default_rng(4)
    biased = watched_days(source_of(frame_of(rng, bias=0.04, users=20)), ASKED)
    # the truth predicts better than a bias
    found = judge(biased.days, ASKED)
    assert CALIBRATION in found.alarms
    assert found.tests[CALIBRATION].mean == pytest.approx(-0.04, abs=0.01)
    known = watched_days(source_of(frame_of(rng, better=0.1, users=20)), ASKED)
    found = judge(known.days, ASKED)
    assert BETTER in found.alarms
    gain = known.days["gain"].sum() / known.days["reviews"].sum()
    assert found.tests[BETTER].mean == pytest.approx(gain)
    assert gain > 0.01
    swapped = judge(known.days.assign(gain=-known.days["gain"]), ASKED)
    for answer, other in ((found, WORSE), (swapped, BETTER)):
        assert {BETTER, WORSE} - {*answer.alarms} == {other}


def test_evidence_of_a_day_does_not_change_with_days_to_come(calm):
    whole, part = judge(calm.days, ASKED), judge(calm.days.iloc[:40], ASKED)
    for name, test in part.tests.items():
        np.testing.assert_allclose(test.log_e, whole.tests[name].log_e[: len(test.day)])


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    frame_of(np.random.default_rng(4), better=0.1, users=20, days=60).to_parquet(path)
    return path


@pytest.fixture
def night(tmp_path, log, capsys, monkeypatch):
    """Type the command in an empty folder; return its status and what its last line says."""
    monkeypatch.chdir(tmp_path)

    def typed(until, *words, status=None):
        asked = ["champion=ours", "challenger=theirs", "data.columns.user=user"]
        found = command([str(log), *asked, f"until={until}", "tracking.uri=sqlite:///m.db", *words])
        lines = capsys.readouterr().out.strip().splitlines()
        assert status in (None, found)
        return json.loads(lines[-1]) if found in (0, 3) else {}

    return typed


@pytest.fixture
def registry(tmp_path):
    """A registered model with two versions, of which the first is the champion."""
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'm.db'}")
    client.create_registered_model("recall")
    for number in ("1", "2"):
        client.create_model_version("recall", source=str(tmp_path))
        client.set_registered_model_alias(
            "recall", ("champion", "challenger")[number == "2"], number
        )
    return client


@pytest.mark.slow
def test_nights_are_runs_under_one_parent_and_curves_grow(night, tmp_path):
    first = night("2024-03-20", status=0)
    assert (first["last_day"], first["days"], first["alarms"]) == ("2024-03-19", 17, [])
    assert first["users"] == 20
    again = night("2024-03-20", status=0)
    assert (again["new_days"], again["tests"]) == (0, first["tests"])
    last = night("2024-04-20", status=3)
    assert last["alarms"] == [BETTER]
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'm.db'}")
    (experiment,) = client.search_experiments(filter_string="name = 'srs_eval_watch'")
    runs = client.search_runs([experiment.experiment_id])
    nights = [run for run in runs if run.data.tags["kind"] == "night"]
    (parent,) = (run for run in runs if run.data.tags["kind"] == "watch")
    assert len(nights) == 3
    assert {run.data.tags["mlflow.parentRunId"] for run in nights} == {parent.info.run_id}
    curve = client.get_metric_history(parent.info.run_id, f"evidence/{BETTER}")
    assert [point.step for point in curve] == list(range(last["days"]))
    assert curve[-1].value == pytest.approx(last["tests"][BETTER]["log10_evidence"], abs=1e-5)
    limit = client.get_metric_history(parent.info.run_id, "evidence/alarm_at")
    assert {point.value for point in limit} == {2.0}
    assert {file.path for file in client.list_artifacts(parent.info.run_id)} >= {"evidence.svg"}


@pytest.mark.slow
def test_the_alias_moves_once_and_only_on_proof(night, registry, tmp_path):
    def champion():
        return str(registry.get_model_version_by_alias("recall", "champion").version)

    assert night("2024-03-20", "promote=recall")["promotion"] is None
    would = night("2024-04-20", "promote=recall", "dry_run=true", status=3)
    assert (champion(), would["promotion"]["done"]) == ("1", False)
    assert night("2024-03-20", "dry_run=true")["days"] == 17  # nothing was written
    done = night("2024-04-20", "promote=recall", status=3)["promotion"]
    assert (champion(), done["before"], done["after"], done["done"]) == ("2", "1", "2", True)
    tags = [registry.get_model_version("recall", version).tags for version in "12"]
    assert [tag["srs_eval.promotion"] for tag in tags] == [done["reason"]] * 2
    # once: whoever moves it back has a reason
    registry.set_registered_model_alias("recall", "champion", "1")
    assert night("2024-04-25", "promote=recall")["promotion"] == done
    assert champion() == "1"
    registry.delete_registered_model_alias("recall", "challenger")
    night("2024-04-25", "promote=recall", "out=other", status=2)
    night("2024-04-25", "promote=memory", "out=other", status=2)


def test_commands_that_cannot_be_meant_are_refused(night, tmp_path):
    words = "challenger=ours retention=1.5 level=0 until=tomorrow data.columns.user=learner"
    for word in (*words.split(), "champion=mine"):
        assert night("2024-03-20", word, "tracking=none") == {}
    assert not (tmp_path / "watch" / "watch.json").exists()


def test_the_log_of_a_run_is_watched_too(night, tmp_path, log):
    folder = tmp_path / "run"
    columns = {"user": "user", "p": ["ours", "theirs"]}
    data = {"_target_": "srs_eval.data.table.ReviewTable", "path": str(log), "columns": columns}
    write(folder, {"summary.json": "{}", ".hydra/config.yaml": json.dumps({"data": data})})
    typed = [str(folder), "champion=ours", "until=2024-04-20", "tracking=none"]
    assert command([*typed, "dry_run=true"]) == 0
    assert not (tmp_path / "watch" / "watch.json").exists()
    assert command(typed) == 0
    assert command([*typed, "data.first=1"]) == 2
    record = json.loads((tmp_path / "watch" / "watch.json").read_text())
    assert len(record["days"]["day"]) == 48
