"""Every algorithm against the published reference implementations, in double precision."""

import json
from pathlib import Path

import numpy as np
import pytest
from golden_logs import log_of_all_histories

from srs_eval.algorithms.features.act_r import ActivationEquations
from srs_eval.algorithms.features.dash import Dash, DashMcm
from srs_eval.algorithms.features.dash_act_r import FadingTraces
from srs_eval.algorithms.features.log_odds import LogOddsModel
from srs_eval.algorithms.features.logistic import LogisticEquations
from srs_eval.algorithms.features.logistic_features import features
from srs_eval.algorithms.fsrs.fsrs1 import Fsrs1Equations
from srs_eval.algorithms.fsrs.fsrs2 import Fsrs2Equations
from srs_eval.algorithms.fsrs.fsrs3 import Fsrs3Equations
from srs_eval.algorithms.fsrs.fsrs4 import Fsrs4Equations
from srs_eval.algorithms.fsrs.fsrs5 import Fsrs5Equations
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6Equations
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7Equations
from srs_eval.algorithms.fsrs.fsrs7_withdrawn import Fsrs7WithdrawnEquations
from srs_eval.algorithms.fsrs.fsrs45 import FRACTIONAL_DAYS_DEFAULTS, Fsrs45Equations
from srs_eval.algorithms.half_life.ebisu import EbisuModel, beliefs_before
from srs_eval.algorithms.half_life.hlr import HlrEquations
from srs_eval.algorithms.history import history_of
from srs_eval.algorithms.schedulers.anki_sm2 import AnkiSm2Equations
from srs_eval.algorithms.schedulers.sbd import SbdEquations
from srs_eval.algorithms.schedulers.sm2 import Sm2Equations
from srs_eval.algorithms.schedulers.sm2_trainable import Sm2TrainableEquations
from srs_eval.engine.recurrent import RecurrentModel

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/predictions.json").read_text())

EQUATIONS = {
    ("SM-2", "days"): Sm2Equations(),
    ("SM-2-trainable", "days"): Sm2TrainableEquations(),
    ("Anki-SM-2", "days"): AnkiSm2Equations(),
    ("Anki-SM-2-swapped", "days"): AnkiSm2Equations(published_order=True),
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
    ("FSRS-7-35", "secs"): Fsrs7WithdrawnEquations(),
    ("SBD", "days"): SbdEquations(),
    ("SBD", "secs"): SbdEquations(),
}

LOG_ODDS = {
    ("DASH", "days"): Dash().log_odds(whole_days=True),
    ("DASH", "secs"): Dash().log_odds(whole_days=True),
    ("DASH[MCM]", "days"): DashMcm().log_odds(whole_days=True),
    ("DASH[MCM]", "secs"): DashMcm().log_odds(whole_days=True),
    ("DASH[ACT-R]", "days"): FadingTraces(),
    ("DASH[ACT-R]", "secs"): FadingTraces(),
    ("ACT-R", "days"): ActivationEquations(),
    ("ACT-R", "secs"): ActivationEquations(),
    ("LogisticRegression", "secs"): LogisticEquations(),
}

# HLR's golden state is the half-life, which is no state of ours: the predictions tell it.
OTHER_STATE = {"HLR"}

CASES = [
    pytest.param(algorithm, vector, id=f"{algorithm['name']}-{algorithm['interval']}-{vector}")
    for algorithm in GOLDEN["algorithms"]
    if (algorithm["name"], algorithm["interval"]) in EQUATIONS
    for vector in algorithm["parameters"]
]


@pytest.mark.parametrize(("golden", "vector"), CASES)
def test_predictions_and_states_equal_the_reference(golden, vector):
    reviews, nth = log_of_all_histories(GOLDEN, golden["interval"])
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


LOG_ODDS_CASES = [
    pytest.param(golden, vector, id=f"{golden['name']}-{golden['interval']}-{vector}")
    for golden in GOLDEN["algorithms"]
    if (golden["name"], golden["interval"]) in LOG_ODDS
    for vector in golden["parameters"]
]


@pytest.mark.parametrize(("golden", "vector"), LOG_ODDS_CASES)
def test_predictions_from_whole_histories_equal_the_reference(golden, vector):
    reviews, nth = log_of_all_histories(GOLDEN, golden["interval"])
    log_odds = LOG_ODDS[golden["name"], golden["interval"]]
    model = LogOddsModel(log_odds, tuple(golden["parameters"][vector]))
    p = model.predict(reviews, np.arange(len(reviews)))
    for history in GOLDEN["histories"]:
        rows = np.flatnonzero(reviews.card == history["id"])
        expected = np.array(golden["results"][str(history["id"])][vector]["p"], float)
        # The regression is published without predictions at no time after the review before.
        known = ~np.isnan(expected)
        assert (known | (nth[rows] == 0) | (reviews.elapsed[rows] == 0)).all()
        np.testing.assert_allclose(
            p[rows][known], expected[known], rtol=0, atol=1e-12, err_msg=history["name"]
        )
        assert np.isnan(p[rows][:1]).all()


READ = {
    "DASH": ("final_state", Dash().log_odds(whole_days=True).counts),
    "DASH[MCM]": ("final_state", DashMcm().log_odds(whole_days=True).counts),
    "LogisticRegression": ("final_features", features),
}


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("card", [history["id"] for history in GOLDEN["histories"]])
def test_what_is_read_from_whole_histories_equals_the_reference(name, card):
    key, read = READ[name]
    for golden in GOLDEN["algorithms"]:
        expected = golden["results"][str(card)].get("default", {}).get(key)
        if golden["name"] == name and expected is not None:
            reviews, _ = log_of_all_histories(GOLDEN, golden["interval"])
            last = np.flatnonzero(reviews.card == card)[-1:]
            found = read(history_of(reviews), last, reviews.elapsed[last])
            np.testing.assert_allclose(found, [expected], rtol=0, atol=1e-10)


@pytest.mark.parametrize("interval", ["days", "secs"])
def test_ebisu_equals_the_reference(interval):
    (golden,) = [
        golden
        for golden in GOLDEN["algorithms"]
        if (golden["name"], golden["interval"]) == ("Ebisu-v2", interval)
    ]
    reviews, _ = log_of_all_histories(GOLDEN, interval)
    everything = np.arange(len(reviews))
    p = EbisuModel().predict(reviews, everything)
    before, surprised = beliefs_before(reviews, everything)
    assert not surprised.any()
    for history in GOLDEN["histories"]:
        rows = np.flatnonzero(reviews.card == history["id"])
        expected = golden["results"][str(history["id"])]["default"]
        np.testing.assert_allclose(p[rows], np.array(expected["p"], float), rtol=0, atol=1e-9)
        # The last state is that after all reviews, which is asked for by none of them. With 60
        # digits, the reference's own search is found to end within 3e-9.
        np.testing.assert_allclose(
            before[:, rows[1:]].T, np.reshape(expected["states"][:-1], (-1, 3)), rtol=1e-8
        )


def test_default_parameters_are_the_published_ones():
    for golden in GOLDEN["algorithms"]:
        key = (golden["name"], golden["interval"])
        if key in EQUATIONS and golden["interval"] == "days":
            assert list(EQUATIONS[key].parameters.defaults) == golden["parameters"]["default"]
        if key in LOG_ODDS:
            defaults = LOG_ODDS[key].parameters.defaults
            np.testing.assert_allclose(defaults, golden["parameters"]["default"], atol=1e-13)


def test_dash_starts_elsewhere_with_same_day_reviews_as_published():
    (golden,) = [
        golden
        for golden in GOLDEN["algorithms"]
        if (golden["name"], golden["interval"]) == ("DASH", "secs")
    ]
    for algorithm in (Dash(), DashMcm()):
        space = algorithm.log_odds(whole_days=False).parameters
        assert list(space.defaults) == golden["parameters"]["default_short"]


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
