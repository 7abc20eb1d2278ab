"""Every algorithm against the published reference implementations, in double precision."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from srs_eval.algorithms.fsrs1 import Fsrs1Equations
from srs_eval.algorithms.fsrs2 import Fsrs2Equations
from srs_eval.algorithms.fsrs3 import Fsrs3Equations
from srs_eval.algorithms.fsrs4 import Fsrs4Equations
from srs_eval.algorithms.fsrs5 import Fsrs5Equations
from srs_eval.algorithms.fsrs6 import Fsrs6Equations
from srs_eval.algorithms.fsrs7 import Fsrs7Equations
from srs_eval.algorithms.fsrs45 import FRACTIONAL_DAYS_DEFAULTS, Fsrs45Equations
from srs_eval.algorithms.hlr import HlrEquations
from srs_eval.algorithms.sbd import SbdEquations
from srs_eval.algorithms.sm2 import Sm2Equations
from srs_eval.engine.recurrent import RecurrentModel
from srs_eval.nouns import Reviews

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/predictions.json").read_text())

EQUATIONS = {
    ("SM-2", "days"): Sm2Equations(),
    ("HLR", "days"): HlrEquations(),
    ("HLR", "secs"): HlrEquations(),
    ("FSRSv1", "days"): Fsrs1Equations(),
    ("FSRSv2", "days"): Fsrs2Equations(),
    ("FSRSv3", "days"): Fsrs3Equations(),
    ("FSRSv4", "days"): Fsrs4Equations(),
    ("FSRS-4.5", "days"): Fsrs45Equations(),
    ("FSRS-4.5", "secs"): Fsrs45Equations(shortest_stability=0.0001),
    ("FSRS-5", "days"): Fsrs5Equations(),
    ("FSRS-5", "secs"): Fsrs5Equations(shortest_stability=0.0001),
    ("FSRS-6", "days"): Fsrs6Equations(),
    ("FSRS-6", "secs"): Fsrs6Equations(),
    ("FSRS-6-floor3", "days"): Fsrs6Equations(lowest_floored_rating=3),
    ("FSRS-7", "days"): Fsrs7Equations(),
    ("FSRS-7", "secs"): Fsrs7Equations(),
    ("SBD", "days"): SbdEquations(),
    ("SBD", "secs"): SbdEquations(),
}

# HLR's golden state is the half-life, which is no state of ours: the predictions tell it.
OTHER_STATE = {"HLR"}

CASES = [
    pytest.param(algorithm, vector, id=f"{algorithm['name']}-{algorithm['interval']}-{vector}")
    for algorithm in GOLDEN["algorithms"]
    if (algorithm["name"], algorithm["interval"]) in EQUATIONS
    for vector in algorithm["parameters"]
]


def log_of_all_histories(interval):
    """One user whose cards are the golden histories, their reviews shuffled into each other."""
    histories = GOLDEN["histories"]
    n = [len(history["rating"]) for history in histories]
    card = np.repeat([history["id"] for history in histories], n)
    nth = np.concatenate([np.arange(length) for length in n])
    day = np.concatenate([history["elapsed_days"] for history in histories])
    seconds = np.concatenate([history["elapsed_seconds"] for history in histories])
    reviews = Reviews(
        user=1,
        card=card,
        day=np.zeros(len(card), np.int64),
        rating=np.concatenate([history["rating"] for history in histories]),
        elapsed_days=np.where(nth == 0, -1, day),
        elapsed=day.astype(float) if interval == "days" else seconds / 86400,
        row=np.arange(len(card)),
    )
    together = np.lexsort((np.random.default_rng(1).random(len(card)), nth))
    return reviews.take(together), nth[together]


@pytest.mark.parametrize(("golden", "vector"), CASES)
def test_predictions_and_states_equal_the_reference(golden, vector):
    reviews, nth = log_of_all_histories(golden["interval"])
    equations = EQUATIONS[golden["name"], golden["interval"]]
    model = RecurrentModel(equations, tuple(golden["parameters"][vector]))
    p = model.predict(reviews, np.arange(len(reviews)))
    states = model.states(reviews)
    for history in GOLDEN["histories"]:
        rows = np.flatnonzero(reviews.card == history["id"])
        assert nth[rows].tolist() == list(range(len(rows)))
        expected = golden["results"][str(history["id"])][vector]
        np.testing.assert_allclose(
            p[rows], np.array(expected["p"], float), rtol=0, atol=1e-11, err_msg=history["name"]
        )
        if golden["name"] not in OTHER_STATE:
            traced = np.stack([column[rows] for column in states.values()], axis=1)
            given = expected.get("states", [expected.get("final_state")])
            np.testing.assert_allclose(
                traced[-len(given) :], given, rtol=1e-10, atol=1e-12, err_msg=history["name"]
            )


def test_default_parameters_are_the_published_ones():
    for golden in GOLDEN["algorithms"]:
        key = (golden["name"], golden["interval"])
        if key in EQUATIONS and golden["interval"] == "days":
            assert list(EQUATIONS[key].parameters.defaults) == golden["parameters"]["default"]


def test_defaults_for_fractional_days_are_the_published_ones():
    (golden,) = [
        golden
        for golden in GOLDEN["algorithms"]
        if (golden["name"], golden["interval"]) == ("FSRS-4.5", "secs")
    ]
    assert list(FRACTIONAL_DAYS_DEFAULTS) == golden["parameters"]["default"]


@pytest.mark.parametrize("equations", EQUATIONS.values(), ids=map(str, EQUATIONS))
def test_every_default_lies_inside_the_bounds_and_has_a_spread(equations):
    space = equations.parameters
    assert space.checked(space.defaults, "defaults") == space.defaults
    assert all(spread > 0 for spread in space.spread)


def test_every_golden_vector_lies_inside_the_bounds():
    for golden in GOLDEN["algorithms"]:
        key = (golden["name"], golden["interval"])
        if key in EQUATIONS and golden["interval"] == "days":
            for vector in golden["parameters"].values():
                EQUATIONS[key].parameters.checked(vector, golden["name"])


def test_names_of_cards_do_not_matter():
    reviews, _ = log_of_all_histories("days")
    renamed = replace(reviews, card=reviews.card * 1000 - 7)
    model = RecurrentModel(Fsrs6Equations(), Fsrs6Equations.parameters.defaults)
    rows = np.arange(len(reviews))
    np.testing.assert_array_equal(model.predict(reviews, rows), model.predict(renamed, rows))
