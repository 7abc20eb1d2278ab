"""`srs_eval.evaluate`, `fit` and `load`: the numbers of the command, for people in Python."""

import json
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import pytest
from annotated_types import Ge
from cases import rest_nightly
from commands import process, run_here
from hydra import initialize
from hydra.core.global_hydra import GlobalHydra
from invented import Told

import srs_eval as se
from srs_eval.errors import ConfigError, FitError, SrsEvalError
from srs_eval.inputs import option_of_data
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.runs.commands import COMMANDS
from srs_eval.runs.words import status

NAMES = {"user": "learner", "card": "item", "rating": "grade", "time": "answered_at"}
OF_ONE = {noun: name for noun, name in NAMES.items() if noun != "user"}


@pytest.fixture(scope="module")
def result():
    return evaluated("fsrs6", users=2, size_scale=0.02, fit="s0")


class Rate(se.Algorithm):
    """Predicts the share of recalls, moved by `shift`."""

    def __init__(self, shift=0.0, broken_for=()):
        self.shift, self.broken_for = shift, broken_for

    def fit(self, reviews, rows, rng):
        if reviews.user in self.broken_for:
            raise FitError("no")
        p = float(reviews.recalled[rows].mean()) + self.shift
        return Told(p, (p,))


@cache
def log(users=("ann", "ben"), cards=40, reviews=8):
    """A log of cards that are reviewed every 1 to 3 days, in any order."""
    rng = np.random.default_rng(0)
    days = np.cumsum(rng.choice([1, 1, 2, 3], (len(users), cards, reviews)), axis=2).ravel()
    who = pd.MultiIndex.from_product([users, [f"word {card}" for card in range(cards)]])
    frame = who.repeat(reviews).to_frame(index=False, name=["learner", "item"])
    frame["grade"] = rng.choice([1, 3, 3, 3, 4], len(frame))
    noon = pd.Timestamp("2024-01-01 12:00", tz="UTC")
    frame["answered_at"] = noon + pd.to_timedelta(days, unit="D")
    return frame.sample(frac=1, random_state=0)


def evaluated(algorithm="avg", data="synthetic", **options):
    return se.evaluate(algorithm, data, **{"panel": "quick", "progress": False, **options})


def test_a_csv_and_its_frame_have_the_results_of_the_command(tmp_path, capsys):
    frame = log(("ann",)).drop(columns="learner")
    file = tmp_path / "frame.csv"
    frame.to_csv(file, index=False)
    words = ["algo=avg", "data=csv", f"data.path={file}", "panel=quick"]
    words += [f"data.columns.{noun}={name}" for noun, name in OF_ONE.items()]
    words += ["tracking=none", "figures=false", f"hydra.run.dir={tmp_path / 'run'}"]
    assert run_here(words) == 0
    by_frame = evaluated("avg", frame, **OF_ONE, folder=tmp_path / "python")
    expected = se.load(tmp_path / "run")
    for made in (evaluated("avg", file, **OF_ONE), by_frame):
        for name in ("predictions", "scores", "summary"):
            pd.testing.assert_frame_equal(getattr(made, name), getattr(expected, name))
        assert made.facts.data_fingerprint == expected.facts.data_fingerprint
        assert made.facts.label == "avg"
    capsys.readouterr()
    assert status(*COMMANDS["export"], [str(tmp_path / "python"), "to=json"]) == 0
    assert capsys.readouterr().out.strip() == str(by_frame.export("json"))


@cache
def failing():
    return se.fit(Rate(broken_for=("ben",)), log(), **NAMES, progress=False)


@dataclass(frozen=True)
class Wrong(Rate):
    """Has options whose annotations say what they are."""

    shift: float = 0.0
    fit_every: Annotated[int, Ge(1)] = 1
    inside: object = None


EVALUATED = [
    ({"algorithm": "fsrs6", "fti": "s0"}, "there is no argument fti"),
    ({"algorithm": "lsmt"}, "algo/lsmt'"),
    ({"data": log(), "crad": "item"}, "there is no argument crad"),
    ({"users": "9-1"}, "data.users='9-1'"),
    ({"seed": -1}, "seed=-1"),
    ({"workers": 0}, "workers=0"),
    ({"fit_timeout": 0}, "fit_timeout=0"),
    ({"algorithm": Rate}, "algo: <class"),
    ({"algorithm": Wrong(shift="much")}, "algo.shift='much': Input should be a valid number"),
    ({"algorithm": Wrong(inside=Wrong(fit_every=0))}, "algo.inside.fit_every=0: Input should be"),
    ({"protocol": SrsBenchmark(refits=2)}, "protocol.refits=2: Input should be"),
    ({"data": Path("here")}, "here: no such file"),
    ({"data": log().set_index("learner"), **NAMES}, "'learner'"),
]


@pytest.mark.parametrize(("given", "problem"), EVALUATED)
def test_what_cannot_be_evaluated_is_refused(given, problem):
    with pytest.raises(SrsEvalError, match=re.escape(problem)):
        evaluated(**given)


ASKED = [
    ("export", {"to": "json", "user": "ben"}, "user ben, fold 5: the fit failed"),
    ("export", {"to": "json", "user": "bob"}, "user=bob: no such user"),
    ("export", {"to": "anki", "user": "ann"}, "no version of FSRS"),
    ("predict", {}, "user ben: the fit failed"),
    ("predict", {"data": log(("eve",))}, "user eve: was not fitted"),
    ("predict_at", {"days": 3, "data": log(("ann",))}, "has no forgetting curve"),
    ("next_intervals", {"retention": 1}, "retention=1"),
    ("next_intervals", {"level": 0}, "level=0"),
]


@pytest.mark.parametrize(("name", "given", "problem"), ASKED)
def test_what_cannot_be_asked_of_a_fit_is_refused(name, given, problem):
    with pytest.raises(SrsEvalError, match=re.escape(problem)):
        getattr(failing(), name)(**given)


def test_arguments_are_given_to_the_option_that_has_them_also_inside_a_program_of_hydra():
    assert se.source("synthetic", users=3, seed=1).users() == range(1, 4)
    with initialize(version_base=None):
        around = GlobalHydra.instance().hydra
        assert se.algorithm("constant", p=0.8).p == 0.8
        assert GlobalHydra.instance().hydra is around


def test_the_option_that_reads_data_is_known_by_its_path(tmp_path):
    for place in ("published/revlogs", "parts/user_id=1", "plain", "mine/user=a"):
        (tmp_path / place).mkdir(parents=True)
    options = ("published", "parts", "mine", "plain", "a.CSV", "a.parquet", "a.colpkg", "a.ANKI2")
    found = [option_of_data(tmp_path / name) for name in options]
    assert found == [*["revlogs_10k"] * 2, "partitioned", *["csv"] * 3, *["anki"] * 2]
    named = [option_of_data(data) for data in ("synthetic", "syntetic", "logs/*.csv", log(), 3)]
    assert named == ["synthetic", "syntetic", "csv", "csv", None]


def test_fits_that_fail_or_are_skipped_are_shown_and_replaced_by_nothing():
    made = evaluated(Rate(0.01, broken_for=("ben",)), log(), **NAMES)
    assert made.facts.label == "Rate(shift=0.01, broken_for=['ben'])"
    assert sorted(made.scores.index) == ["ann", "ben"]
    assert made.facts.failed == 5
    assert set(made.predictions["user"]) == {"ann"}
    fitted = failing()
    assert "nan" not in repr(fitted).lower()  # empty cells are empty
    assert fitted.parameters.isna()[0].to_dict() == {"ann": False, "ben": True}
    frame = pd.concat([log(), log(("eve",), cards=1)])
    fitted = se.fit("avg", frame, **NAMES, progress=False)
    assert fitted.fits["status"].to_dict() == {"ann": "ok", "ben": "ok", "eve": "skipped"}
    assert set(fitted.predict()["user"]) == {"ann", "ben"}
    with pytest.raises(FitError, match="user eve"):
        fitted.predict(frame)


def test_results_of_one_label_are_told_apart_and_one_user_has_no_distribution():
    one, other = (evaluated("avg", users=1, size_scale=0.02, seed=seed) for seed in (1, 2))
    assert [*se.compare([one, other]).table.index] == ["avg (result 1)", "avg (result 2)"]
    with pytest.raises(ConfigError, match="avg keeps nothing"):
        one.plot_users()


class Interrupted(Rate):
    """Is moved by what no option could say; begins fits until it is interrupted."""

    begun: list[int] = []
    most = None

    def __init__(self, *shifts):
        self.shifts = np.array(shifts)

    def fit(self, reviews, rows, rng):
        if len(self.begun) == self.most:
            raise KeyboardInterrupt
        self.begun.append(reviews.user)
        return Told(self.shifts.sum())


@pytest.mark.parametrize(("again", "begun"), [(0.5, [2] * 5), (0.3, [1] * 5 + [2] * 5)])
def test_an_interrupted_evaluation_goes_on_with_an_object_of_the_same_content(
    tmp_path, monkeypatch, again, begun
):
    options = {"users": 2, "size_scale": 0.02, "folder": tmp_path, "check_lookahead": False}
    monkeypatch.setattr(Interrupted, "begun", [])
    monkeypatch.setattr(Interrupted, "most", 7)
    with pytest.raises(KeyboardInterrupt):
        evaluated(Interrupted(0.5, 0.3), **options)
    monkeypatch.setattr(Interrupted, "begun", [])
    monkeypatch.setattr(Interrupted, "most", None)
    made = evaluated(Interrupted(again, 0.3), **options)
    assert Interrupted.begun == begun
    np.testing.assert_allclose(made.predictions["p"], again + 0.3, rtol=1e-6)


def test_a_result_can_be_saved_where_it_is(result, tmp_path):
    saved = result.save(tmp_path)
    assert saved.save(tmp_path).folder == tmp_path
    pd.testing.assert_frame_equal(se.load(tmp_path).predictions, result.predictions)


@pytest.mark.parametrize(
    "name", rest_nightly(["forgetting", "calibration", "roc", "bins", "users"])
)
def test_figures_are_of_matplotlib(result, name):
    assert getattr(result, f"plot_{name}")()._repr_png_().startswith(b"\x89PNG")


def test_a_fit_to_everything_predicts_and_exports():
    frame = log()
    fitted = se.fit(Rate(), frame, **NAMES)
    seen = fitted.predict()
    assert list(seen.index) == list(range(len(seen)))
    for user, of_user in seen.groupby("user"):
        own = frame[frame["learner"] == user].sort_values("answered_at", kind="stable")
        rows = own.iloc[of_user["row"]]
        assert set(of_user["card"]) <= set(own["item"])
        np.testing.assert_array_equal(of_user["recalled"], rows["grade"] > 1)
        (rate,) = fitted.parameters.loc[user]
        assert (rate, set(of_user["p"])) == (pytest.approx(of_user["recalled"].mean()), {rate})
        assert json.loads(str(fitted.export("json", user=user)))["parameters"] == [rate]
        ours = of_user.drop(columns="row").reset_index(drop=True)
        again = fitted.predict(own).drop(columns="row")
        pd.testing.assert_frame_equal(again, ours, check_like=True)


def test_recall_in_some_days_is_what_is_predicted_of_a_review_then():
    """Each card is given a last review so many days later, which the fit knows nothing of."""
    frame = log()
    fitted = se.fit("fsrs6", frame, fit="s0", **NAMES, progress=False)
    found = fitted.predict_at([1, 7, 30])
    assert (fitted.predict_at(0)["recall"] > found["recall"][::3].max()).all()
    for days in (-1, [], [[1]], np.nan):
        with pytest.raises(ConfigError):
            fitted.predict_at(days)
    cards = frame.sort_values("answered_at").drop_duplicates(["learner", "item"], keep="last")
    assert list(found.index) == list(range(3 * len(cards)))
    for days, of_days in found.groupby("days"):
        later = cards.assign(answered_at=cards["answered_at"] + pd.Timedelta(days=days))
        seen = fitted.predict(pd.concat([frame, later]))
        expected = seen.groupby(["user", "card"])["p"].last()
        actual = of_days.set_index(["user", "card"])["recall"][expected.index]
        assert len(actual) > 20  # the others' first intervals are rare
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


SCRIPT = """
import numpy as np, srs_eval as se

class Rate(se.Algorithm):
    def fit(self, reviews, rows, rng):
        return Model(float(reviews.recalled[rows].mean()))

class Model:
    def __init__(self, p):
        self.parameters = (p,)
    def predict(self, reviews, rows):
        return np.full(len(rows), self.parameters[0])

data = {"data": "synthetic", "users": 2, "size_scale": 0.05, "workers": 2}
assert se.evaluate(Rate(), panel="quick", **data).facts.failed == 0
assert type(se.fit(Rate(), **data).by_user[1].model) is Model
print("once")
"""


@pytest.mark.slow
@pytest.mark.parametrize("from_file", rest_nightly([True, False]))
def test_worker_processes_know_what_a_script_defines(tmp_path, from_file):
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    words = [sys.executable, str(file)] if from_file else [sys.executable, "-"]
    done = process(words, input=SCRIPT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "once\n", "")
