"""`srs_eval.evaluate`, `fit` and `load`: the numbers of the command, for people in Python."""

import json
import pickle
import re
import subprocess
import sys
import time
from multiprocessing.pool import ThreadPool
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import rest_nightly
from commands import simulated

import srs_eval as se
from srs_eval.api.inputs import option_of_data
from srs_eval.data.partitioned import INDEX
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ConfigError, FailedAlikeError, FitError, SrsEvalError
from srs_eval.evaluation.limits import process_is_spoiled

SMALL = {"users": 2, "size_scale": 0.02, "panel": "quick"}


@pytest.fixture(scope="module", autouse=True)
def _simulated_once():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SyntheticUsers, "read", lambda source, user: simulated(source, user))
        yield


@pytest.fixture(scope="module")
def result(_simulated_once):
    return se.evaluate("fsrs6", "synthetic", **SMALL, fit="s0", progress=False)


class Rate(se.Algorithm):
    """Predicts the share of recalls, moved by `shift`."""

    def __init__(self, shift=0.0, broken_for=()):
        self.shift = shift
        self.broken_for = broken_for

    def fit(self, reviews, rows, rng):
        if reviews.user in self.broken_for:
            raise FitError("no")
        return Constant(float(reviews.recalled[rows].mean()) + self.shift)


class Constant:
    def __init__(self, p):
        self.parameters = (p,)

    def predict(self, reviews, rows):
        return np.full(len(rows), self.parameters[0])


def log(users=("ann", "ben"), cards=40, reviews=8):
    """A log of cards that are reviewed every 1 to 3 days, in any order."""
    rng = np.random.default_rng(0)
    days = np.cumsum(rng.choice([1, 1, 2, 3], (len(users), cards, reviews)), axis=2)
    frame = pd.DataFrame(
        {
            "learner": np.repeat(users, cards * reviews),
            "item": np.tile(
                np.repeat([f"word {card}" for card in range(cards)], reviews), len(users)
            ),
            "grade": rng.choice([1, 3, 3, 3, 4], days.size),
            "answered_at": pd.Timestamp("2024-01-01 12:00", tz="UTC")
            + pd.to_timedelta(days.ravel(), unit="D"),
        }
    )
    return frame.sample(frac=1, random_state=0)


NAMES = {"user": "learner", "card": "item", "rating": "grade", "time": "answered_at"}


@pytest.mark.slow
def test_results_are_those_of_the_command(tmp_path):
    from srs_eval.commands.run import command

    words = ["algo=fsrs6", "algo.fit=s0", "data=synthetic", "data.users=2"]
    words += ["data.size_scale=0.02", "panel=quick", "tracking=none", "figures=false"]
    assert command([*words, f"hydra.run.dir={tmp_path / 'command'}"]) == 0
    made = se.evaluate("fsrs6", "synthetic", **SMALL, fit="s0", folder=tmp_path / "python")
    for name in ("scores.parquet", "predictions.parquet", "curves.parquet", "summary.json"):
        assert (tmp_path / "python" / name).read_bytes() == (
            tmp_path / "command" / name
        ).read_bytes()
    loaded = se.load(tmp_path / "command")
    for name in ("scores", "summary", "predictions"):
        pd.testing.assert_frame_equal(getattr(loaded, name), getattr(made, name))
    assert str(loaded) == str(made)
    assert str(loaded.export("anki", user=1)) == str(made.export("anki", user=1))


def test_a_csv_and_its_frame_have_the_results_of_the_command(tmp_path, capsys):
    from srs_eval.commands.export import command as export
    from srs_eval.commands.run import command

    frame = log(["ann"]).drop(columns="learner")
    frame.to_csv(tmp_path / "frame.csv", index=False)
    names = {noun: name for noun, name in NAMES.items() if noun != "user"}
    words = ["algo=avg", "data=csv", f"data.path={tmp_path / 'frame.csv'}", "panel=quick"]
    words += [f"data.columns.{noun}={name}" for noun, name in names.items()]
    words += ["tracking=none", "figures=false", f"hydra.run.dir={tmp_path / 'run'}"]
    assert command(words) == 0
    by_path = se.evaluate("avg", tmp_path / "frame.csv", panel="quick", **names)
    by_frame = se.evaluate("avg", frame, panel="quick", **names, folder=tmp_path / "python")
    expected = se.load(tmp_path / "run")
    for made in (by_path, by_frame):
        pd.testing.assert_frame_equal(made.predictions, expected.predictions)
        pd.testing.assert_frame_equal(made.scores, expected.scores)
        assert made.facts.data_fingerprint == expected.facts.data_fingerprint
    capsys.readouterr()
    assert export([str(tmp_path / "python"), "to=json"]) == 0
    assert capsys.readouterr().out.strip() == str(by_frame.export("json"))


def test_hydra_and_mlflow_are_not_imported(tmp_path):
    code = """
import sys, srs_eval as se
result = se.evaluate("constant", "synthetic", users=2, size_scale=0.05, panel="quick")
result.save(sys.argv[1])
se.load(sys.argv[1]).summary
se.fit("avg", "synthetic", users=1, size_scale=0.05).export("json")
se.compare([result])
import srs_eval.compare
assert se.compare is srs_eval.api.comparing.compare
loaded = {"hydra", "mlflow", "torch", "matplotlib", "optuna"} & set(sys.modules)
assert not loaded, loaded
"""
    words = [sys.executable, "-W", "error", "-c", code, str(tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def evaluated(algorithm="avg", data="synthetic", **options):
    return lambda: se.evaluate(algorithm, data, **options)


REFUSED = {
    "a misspelt argument": evaluated("fsrs6", fti="s0"),
    "a misspelt algorithm": evaluated("lsmt"),
    "a misspelt data set": evaluated(data="syntetic"),
    "a misspelt panel": evaluated(panel="fll"),
    "a misspelt column": evaluated(data=log(), crad="item"),
    "an argument of another type": evaluated("fsrs6", half_life="a"),
    "a seed below 0": evaluated(seed=-1),
    "a seed that is not whole": evaluated(seed=1.5),
    "a truth for a number": evaluated(curves_per_user=True),
    "no workers": evaluated(workers=0),
    "no time": evaluated(fit_timeout=0),
    "a number for a protocol": evaluated(protocol=3),
    "a class for a panel": evaluated(panel=Rate),
    "users from the last": evaluated(users="9-1"),
    "a class for an algorithm": evaluated(Rate),
    "an object for an algorithm": evaluated(object()),
    "nothing for an algorithm": evaluated(None),
    "a mapping for data": evaluated(data={"card": [1]}),
    "nothing for data": evaluated(data=None),
    "a list for data": evaluated(data=[1, 2]),
    "a column for data": evaluated(data=pd.Series([1])),
    "users in the index": evaluated(
        data=log().rename(columns={"learner": "user"}).set_index("user"),
        **{noun: name for noun, name in NAMES.items() if noun != "user"},
    ),
    "a file that is not there": evaluated(data="nothing/here.csv"),
    "a path that is not there": evaluated(data=Path("here")),
    "a run that is not there": lambda: se.load("nothing"),
    "a user who failed": lambda: failing().export("json", user="ben"),
    "a user who is not there": lambda: failing().export("json", user="bob"),
    "one user of two": lambda: failing().export("json"),
    "a format that is none": lambda: failing().export("ankii", user="ann"),
    "no version of FSRS": lambda: failing().export("anki", user="ann"),
    "predictions after a failed fit": lambda: failing().predict(),
    "predictions for somebody else": lambda: failing().predict(log(["eve"])),
    "curves that a model has not": lambda: se.fit(Rate(), log(), **NAMES).predict_at(3),
    "figures of nothing": lambda: failed_for_all().plot_roc(),
}


def failing():
    return se.fit(Rate(broken_for=("ben",)), log(), **NAMES, progress=False)


def failed_for_all():
    broken = Rate(broken_for=("ann", "ben"))
    return se.evaluate(broken, log(), panel="quick", **NAMES, progress=False)


def test_what_cannot_be_is_refused(golden_text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = []
    for name, call in REFUSED.items():
        with pytest.raises(SrsEvalError) as error:
            call()
        lines.append(f"{name}\n  {type(error.value).__name__}: {error.value}")
    golden_text("api_refusals", "\n".join([*lines, ""]))


def test_an_argument_that_two_options_have_is_given_to_one(monkeypatch):
    from srs_eval.config import chosen

    monkeypatch.setattr(chosen, "arguments", lambda group: {"mine": {"seed"}})
    with pytest.raises(ConfigError, match=r"srs_eval\.source"):
        chosen.divided({"seed": 1}, {"algo": "mine", "data": "mine"})
    monkeypatch.undo()
    assert se.source("synthetic", users=3, seed=1).users() == range(1, 4)
    assert se.algorithm("constant", p=0.8).p == 0.8


def test_the_option_that_reads_data_is_known_by_its_path(tmp_path):
    for place in ("published/revlogs", "parts/user_id=1", "plain", "mine"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "mine" / INDEX).write_text("")
    options = ("published", "parts", "mine", "plain", "a.CSV", "a.parquet", "a.colpkg", "a.ANKI2")
    found = [option_of_data(tmp_path / name) for name in options]
    assert found == [*["revlogs_10k"] * 2, "partitioned", *["csv"] * 3, *["anki"] * 2]
    named = [option_of_data(data) for data in ("synthetic", "syntetic", "logs/*.csv", log(), 3)]
    assert named == ["synthetic", "syntetic", "csv", "csv", None]


def test_an_object_is_evaluated_with_its_own_label():
    made = se.evaluate(Rate(0.01), log(), panel="quick", **NAMES)
    assert made.facts.label == "Rate(shift=0.01)"
    assert sorted(made.scores.index) == ["ann", "ben"]
    assert se.evaluate(Rate(), log(), panel="quick", name="mine", **NAMES).facts.label == "mine"


def test_fits_that_fail_are_shown_and_replaced_by_nothing():
    made = se.evaluate(Rate(broken_for=("ben",)), log(), panel="quick", **NAMES)
    assert made.facts.failed == 5
    assert "5 of 10 fits failed; the first: user ben, fold 0: no" in repr(made)
    assert set(made.predictions["user"]) == {"ann"}
    nothing = failed_for_all()
    assert len(nothing.predictions) == 0
    assert "10 of 10 fits failed" in nothing._repr_html_()
    fitted = failing()
    assert "1 of 2 fits failed" in repr(fitted)
    assert fitted.parameters.loc["ben"].isna().all()


@pytest.mark.slow
def test_workers_and_threads_change_nothing_and_print_nothing(result, capfd):
    options = {**SMALL, "fit": "s0", "progress": False}
    with ThreadPool(2) as pool:
        found = pool.map(lambda _: se.evaluate("fsrs6", "synthetic", **options), range(2))
    found.append(se.evaluate("fsrs6", "synthetic", **options, workers=2))
    for made in found:
        pd.testing.assert_frame_equal(made.predictions, result.predictions)
        pd.testing.assert_frame_equal(made.scores, result.scores)
    assert capfd.readouterr() == ("", "")


def test_a_pickled_result_keeps_its_predictions_and_fits(result, tmp_path):
    result.save(tmp_path)
    for whole in (result, se.load(tmp_path)):
        assert len(whole.predictions) > 0  # files are open from here on
        copied = pickle.loads(pickle.dumps(whole))
        pd.testing.assert_frame_equal(copied.predictions, whole.predictions)
        pd.testing.assert_frame_equal(copied.fits, whole.fits)


def test_names_from_data_are_escaped():
    data = log(["<script>"])
    made = se.evaluate("avg", data, panel="quick", name="<b>$x$</b>", **NAMES, progress=False)
    for shown in (made, se.fit("avg", data, **NAMES, progress=False)):
        html = shown._repr_html_()
        assert "<table" in html
        assert not {"<b>", "<script>"} & set(re.findall("<[^>]*>", html))


def test_an_interruption_passes(monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Rate, "fit", stopped)
    with pytest.raises(KeyboardInterrupt):
        se.evaluate(Rate(), log(), **NAMES)


@pytest.mark.parametrize(
    "name", rest_nightly(["calibration", "forgetting", "corp", "roc", "bins", "users"], 2)
)
def test_figures_are_of_matplotlib(result, name):
    from matplotlib.figure import Figure

    figure = getattr(result, f"plot_{name}")()
    assert isinstance(figure, Figure)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_fit_to_everything_predicts_and_exports():
    frame = log()
    fitted = se.fit(Rate(), frame, **NAMES)
    assert fitted.parameters.shape == (2, 1)
    assert sorted(fitted.parameters.index) == ["ann", "ben"]
    seen = fitted.predict()
    assert set(seen.columns) == {"user", "row", "card", "p", "recalled"}
    assert set(seen["card"]) <= set(frame["item"])
    other = fitted.predict(frame[frame["learner"] == "ann"])
    of_ann = seen[seen["user"] == "ann"].reset_index(drop=True)
    pd.testing.assert_frame_equal(other, of_ann)
    assert json.loads(str(fitted.export("json", user="ann")))["parameters"] == [
        fitted.parameters.loc["ann", 0]
    ]


def test_a_skipped_user_does_not_keep_the_others_from_predictions():
    frame = pd.concat([log(), log(["eve"], cards=1)])
    fitted = se.fit("avg", frame, **NAMES, progress=False)
    assert fitted.fits["status"].to_dict() == {"ann": "ok", "ben": "ok", "eve": "skipped"}
    assert set(fitted.predict()["user"]) == {"ann", "ben"}
    with pytest.raises(FitError, match="user eve"):
        fitted.predict(frame)


def test_recall_falls_with_the_days():
    fitted = se.fit("fsrs6", log(), fit="s0", **NAMES)
    found = fitted.predict_at([0, 1, 30])
    wide = found.pivot(index=["user", "card"], columns="days", values="recall")
    assert (wide.diff(axis=1).iloc[:, 1:] < 0).all(axis=None)
    assert len(wide) == len(log().drop_duplicates(["learner", "item"]))
    assert "," in str(fitted.export("anki", user="ann"))


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
@pytest.mark.parametrize("from_file", [True, False])
def test_worker_processes_know_what_a_script_defines(tmp_path, from_file):
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    words = [sys.executable, str(file)] if from_file else [sys.executable, "-"]
    done = subprocess.run(words, input=SCRIPT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "once\n", "")


class Sleeps(Rate):
    def fit(self, reviews, rows, rng):
        if reviews.user in self.broken_for:
            time.sleep(60)
        return super().fit(reviews, rows, rng)


def test_an_evaluation_whose_first_fits_fail_alike_is_stopped():
    source = SyntheticUsers(users=4, size_scale=0.02)
    broken = Rate(broken_for=(1, 2, 3, 4))
    with pytest.raises(FailedAlikeError):
        se.evaluate(broken, source, panel="quick", progress=False)
    made = se.evaluate(broken, source, panel="quick", progress=False, fail_fast=False)
    assert made.facts.failed == 20


@pytest.mark.slow
def test_a_fit_that_takes_too_long_fails_in_a_process_of_its_own():
    made = se.evaluate(Sleeps(broken_for=(1,)), "synthetic", **SMALL, fit_timeout=2, progress=False)
    assert set(made.fits.loc[made.fits["status"] == "failed", "user"]) == {1}
    assert not process_is_spoiled()
