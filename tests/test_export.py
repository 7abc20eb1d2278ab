"""`python -m srs_eval.export`: what it understands, what it refuses, what apps make of it."""

import json
import math
import shutil
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path

import fsrs
import fsrs_rs_python
import numpy as np
import pyarrow.parquet as pq
import pytest
from commands import QUIET, SMALL
from commands import run_here as run_command

from srs_eval.algorithms.fsrs.early import Fsrs45Equations
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs5Equations, Fsrs6Equations
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7Equations
from srs_eval.algorithms.recurrent.model import RecurrentModel
from srs_eval.data.reviews import Reviews
from srs_eval.errors import ConfigError
from srs_eval.evaluation.fits import Fit
from srs_eval.exports.fitted import Fitted
from srs_eval.exports.formats import FORMATS, for_anki, for_anyone, for_py_fsrs
from srs_eval.exports.intervals import days_until
from srs_eval.runs.commands import COMMANDS
from srs_eval.runs.folder import FITS, Run, fits_table
from srs_eval.runs.words import status as status_of

LONGEST = 36500
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
FSRS5 = Fsrs5Equations.parameters.defaults
FSRS6 = Fsrs6Equations.parameters.defaults
FSRS7 = Fsrs7Equations.parameters.defaults
SPACE = Fsrs6Equations.parameters


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone") / "run"
    assert run_command(["algo=fsrs6", *SMALL, *QUIET, f"hydra.run.dir={folder}"]) == 0
    return folder


@pytest.fixture(autouse=True)
def _elsewhere(run, tmp_path, monkeypatch):
    """The run is there as `run`, and as the only run below `several`."""
    monkeypatch.chdir(tmp_path)
    Path("several").mkdir()
    for place in ("run", "several/run"):
        Path(place).symlink_to(run)


@pytest.fixture
def copied(run, tmp_path):
    """Copy the run as `copied`, with its fits changed."""

    def copy(change=lambda fit: fit):
        folder = shutil.copytree(run, tmp_path / "copied")
        pq.write_table(fits_table([change(fit) for fit in Run.read(run).fits()]), folder / FITS)
        return folder

    return copy


def command(words):
    return status_of(*COMMANDS["export"], words)


def fitted(parameters, kind="fsrs.fsrs6.Fsrs6", **about):
    fit = Fit("ann", 4, "ok", n_train=500, n_test=100, parameters=parameters)
    options = {"_target_": f"srs_eval.algorithms.{kind}", **about}
    return Fitted(fit, 4, "made_up", "srs_benchmark", "nothing", options)


def random_parameters(seed):
    noise = np.exp(np.random.default_rng(seed).normal(0, 0.3, len(FSRS6)))
    return tuple(np.clip(np.array(FSRS6) * noise, SPACE.lower, SPACE.upper).tolist())


def random_histories(n, *, same_day=True):
    """Histories of days since the last review and ratings; same days are common in them."""
    rng, histories = np.random.default_rng(20), []
    for length in rng.integers(2, 12, n):
        days = np.round(np.exp(rng.uniform(0, 5, length))).astype(int)
        days[(rng.random(length) < (0.3 if same_day else 0.0)) | (np.arange(length) == 0)] = 0
        ratings = rng.choice(4, length, p=[0.25, 0.15, 0.45, 0.15]) + 1
        histories.append(list(zip(days.tolist(), ratings.tolist(), strict=True)))
    return histories


def as_reviews(histories):
    since, rating = np.array([review for history in histories for review in history]).T
    lengths = [len(history) for history in histories]
    begins, order = np.cumsum([0, *lengths[:-1]]), np.arange(len(since))
    elapsed = np.where(np.isin(order, begins), -1, since)
    day = np.concatenate([np.cumsum([days for days, _ in history]) for history in histories])
    card = np.repeat(np.arange(len(histories)), lengths)
    return Reviews("ann", card, day, rating, elapsed, elapsed.astype(float), order)


def intervals(model, histories, retention):
    """Days until recall has fallen to `retention` after each review."""
    # each review once more, as the end of a history of its own, with one more behind it
    ends = [[*one[: n + 1], (1, 3)] for one in histories for n in range(len(one))]
    behind = np.cumsum([len(end) for end in ends]) - 1
    return days_until(partial(model.predict_at, as_reviews(ends), behind), len(ends), retention)


def in_py_fsrs(scheduler, histories):
    """Recall before and interval after each review."""
    recall, days_ahead = [], []
    for history in histories:
        card, now = fsrs.Card(), BEGIN
        for number, (days, rating) in enumerate(history):
            now += timedelta(days=days)
            before = scheduler.get_card_retrievability(card, now)
            recall.append(before if number else np.nan)
            card, _ = scheduler.review_card(card, fsrs.Rating(rating), now)
            days_ahead.append((card.due - now).days)
    return recall, days_ahead


@pytest.mark.parametrize(
    ("parameters", "kind", "equations", "retention"),
    [
        (random_parameters(1), "fsrs.fsrs6.Fsrs6", Fsrs6Equations(), 0.8),
        (random_parameters(2), "fsrs.fsrs_rs.FsrsRs", Fsrs6Equations(), 0.95),
        (FSRS5, "fsrs.fsrs5.Fsrs5", Fsrs5Equations(), 0.85),
    ],
)
def test_py_fsrs_says_and_does_what_the_model_says(parameters, kind, equations, retention):
    content = json.loads(for_py_fsrs(fitted(parameters, kind)).text)
    assert content == fsrs.Scheduler(parameters=content["parameters"]).to_dict()
    # Days only: no steps within a day, and nothing by chance.
    plain = {"desired_retention": retention, "learning_steps": [], "relearning_steps": []}
    changed = json.dumps({**content, **plain, "enable_fuzzing": False})
    scheduler = fsrs.Scheduler.from_json(changed)
    # the one difference of FSRS-5 is a same-day Hard
    histories = random_histories(200, same_day=equations.parameters is SPACE)
    recall, days_ahead = in_py_fsrs(scheduler, histories)

    model, reviews = RecurrentModel(equations, parameters), as_reviews(histories)
    ours = model.predict(reviews, np.arange(len(reviews)))
    np.testing.assert_allclose(recall, ours, rtol=0, atol=1e-6)
    exact = intervals(model, histories, retention)
    assert days_ahead == np.clip(np.round(exact), 1, LONGEST).astype(int).tolist()


def test_the_optimiser_of_anki_makes_the_same_states_of_the_list():
    parameters = random_parameters(0)
    pasted = [float(number) for number in for_anki(fitted(parameters)).text.split(", ")]
    assert pasted == [round(number, 4) for number in parameters]
    histories = random_histories(100)
    ours = RecurrentModel(Fsrs6Equations(), tuple(pasted)).states(as_reviews(histories))
    package = fsrs_rs_python.FSRS(parameters=pasted)
    theirs = []
    for history in histories:
        reviews = [fsrs_rs_python.FSRSReview(rating, days) for days, rating in history]
        theirs += package.historical_memory_states(fsrs_rs_python.FSRSItem(reviews))
    # It reckons in single precision.
    found = {name: [getattr(state, name) for state in theirs] for name in ours}
    np.testing.assert_allclose(found["stability"], ours["stability"], rtol=1e-4)
    np.testing.assert_allclose(found["difficulty"], ours["difficulty"], rtol=1e-4)
    ahead = [package.next_interval(stability, 0.85, 3) for stability in ours["stability"]]
    exact = intervals(RecurrentModel(Fsrs6Equations(), tuple(pasted)), histories, 0.85)
    np.testing.assert_allclose(ahead, exact, rtol=1e-4)


def test_files_have_the_parameters_of_the_last_fit_and_where_they_come_from(run, capsys):
    finished = Run.read(run)
    first, second = (fit for fit in finished.fits() if fit.fold == 4)
    assert command(["run", "to=py_fsrs", "user=1", "out=new folder/it's.json"]) == 0
    line, found = capsys.readouterr().out.splitlines()[-1], {}
    exec(line.removeprefix("python").strip(), found)
    assert found["scheduler"].parameters == first.parameters
    assert command(["run", "to=anki", "user=2"]) == 0
    numbers = ", ".join(f"{number:.4f}" for number in second.parameters)
    assert capsys.readouterr().out == f"{numbers}\n"
    assert command(["run", "to=json", "user=1"]) == 0
    content = json.loads(capsys.readouterr().out)
    expected = {
        **{"algorithm": "fsrs6", "version": "FSRS-6", "user": 1, "fold": 4, "status": "ok"},
        **{"protocol": "srs_benchmark", "data": "synthetic", "trained_on_reviews": first.n_train},
        "parameters": list(first.parameters),
        "standard_errors": list(first.standard_errors),
        "log_loss": finished.by_user.values[0, finished.by_user.names.index("log_loss")],
        "scored_reviews": finished.by_user.reviews[0],
        "srs_eval_version": version("srs-eval"),
    }
    assert {name: content[name] for name in expected} == expected


def test_a_fit_that_did_not_work_is_not_replaced_by_another(copied, capsys):
    none = {"status": "failed", "reason": "no luck", "parameters": ()}
    copied(lambda fit: replace(fit, **none) if (fit.user, fit.fold) == (1, 4) else fit)
    assert command(["copied", "to=anki", "user=1"]) == 1
    assert capsys.readouterr().out == ""
    assert command(["copied", "to=anki", "user=1", "fold=3"]) == 0
    assert command(["copied", "to=anki", "out=made/"]) == 1  # a file of each user
    assert [path.name for path in Path("made").iterdir()] == ["user_2.txt"]
    assert "no luck" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("run to=anki", "run has 2 users (1, 2)"),
        ("run to=anki user=3", "user=3: no such user"),
        ("run to=anki user=1 fold=9", "fold=9: user 1 has folds 0, 1, 2"),
        ("several to=anki", "several: expected the folder of a finished run"),
        ("copied to=anki", "copied/fits.parquet: cannot be read"),
        ("run to=anki user=1 out=taken/file.txt", "taken"),
        ("run to=srs_benchmark fold=1", "fold="),
        ("run/fits.parquet to=srs_benchmark", "run/fits.parquet"),
    ],
)
def test_what_is_not_exported_is_told(copied, capsys, words, problem):
    Path(copied(), FITS).write_bytes(b"not parquet")
    Path("taken").write_text("")
    assert command(words.split()) == 1
    said = capsys.readouterr()
    assert (said.out, problem in said.err) == ("", True)


@pytest.mark.parametrize(
    ("kind", "parameters", "names"),
    [
        ("fsrs.fsrs4.Fsrs4", Fsrs45Equations.parameters.defaults, ["anki", "json"]),
        ("fsrs.early.Fsrs45", Fsrs45Equations.parameters.defaults, ["anki", "json"]),
        ("fsrs.fsrs5.Fsrs5", FSRS5, ["anki", "py_fsrs", "json"]),
        ("fsrs.fsrs6.Fsrs6", (1e-4, *FSRS6[1:]), ["anki", "json"]),  # outside of the bounds
        ("fsrs.fsrs6.Fsrs6", (math.nan, *FSRS6[1:]), ["json"]),
        ("fsrs.fsrs6.Fsrs6", FSRS6[:-1], []),
        ("fsrs.fsrs_rs.FsrsRs", FSRS6, ["anki", "py_fsrs", "json"]),
        ("fsrs.fsrs7.Fsrs7", FSRS7, ["json"]),
        ("half_life.hlr.Hlr", (0.1, 0.2, 0.3), ["json"]),
        ("baselines.Avg", (), []),
    ],
)
def test_what_no_app_reads_is_refused(kind, parameters, names):
    taken = []
    for name, form in FORMATS.items():
        with suppress(ConfigError):
            form(fitted(parameters, kind))
            taken.append(name)
    assert taken == names


@pytest.mark.parametrize(
    ("kind", "equations"),
    [
        ("fsrs.early.Fsrs45", Fsrs45Equations()),
        ("fsrs.fsrs6.Fsrs6", Fsrs6Equations()),
        ("fsrs.fsrs7.Fsrs7", Fsrs7Equations()),
    ],
)
def test_json_has_the_intervals_at_which_the_model_predicts_90_percent(kind, equations):
    parameters = equations.parameters.defaults
    found = json.loads(for_anyone(fitted(parameters, kind)).text)["first_s90"]
    assert list(found) == ["again", "hard", "good", "easy"]
    first = [[(0, rating)] for rating in (1, 2, 3, 4)]
    expected = intervals(RecurrentModel(equations, parameters), first, 0.9)
    np.testing.assert_allclose(list(found.values()), expected, rtol=1e-6)


def test_json_has_null_for_what_is_no_number_or_never_reached():
    content = json.loads(for_anyone(fitted((*FSRS7[:33], math.nan), "fsrs.fsrs7.Fsrs7")).text)
    assert (content["parameters"], "first_s90" in content) == ([*FSRS7[:33], None], False)
    never = json.loads(for_anyone(fitted((1e12, 1e-12, *FSRS6[2:20], 1e-3))).text)["first_s90"]
    assert [*never.values()][:2] == [None, None]
