"""Every algorithm against the published reference implementations, in double precision."""

import json
from pathlib import Path

import numpy as np
import pytest
from golden_logs import log_of_all_histories
from published import EQUATIONS

from srs_eval.algorithms.features.act_r import ActivationEquations
from srs_eval.algorithms.features.dash import Dash, DashMcm
from srs_eval.algorithms.features.dash_act_r import FadingTraces
from srs_eval.algorithms.features.log_odds import LogOddsModel
from srs_eval.algorithms.features.logistic import LogisticEquations
from srs_eval.algorithms.fsrs.fsrs45 import Fsrs45
from srs_eval.algorithms.half_life.ebisu import EbisuModel, beliefs_before
from srs_eval.engine.recurrent import RecurrentModel

FILE = json.loads((Path(__file__).parents[1] / "golden/predictions.json").read_text())
GOLDEN = {(golden["name"], golden["interval"]): golden for golden in FILE["algorithms"]}
LOG_ODDS = {
    (name, interval): log_odds
    for name, log_odds in {
        "DASH": Dash().log_odds(whole_days=True),
        "DASH[MCM]": DashMcm().log_odds(whole_days=True),
        "DASH[ACT-R]": FadingTraces(),
        "ACT-R": ActivationEquations(),
        "LogisticRegression": LogisticEquations(),
    }.items()
    for interval in ("days", "secs")
    if (name, interval) in GOLDEN
}
CASES = [
    pytest.param(key, vector, id="-".join((*key, vector)))
    for key in (*EQUATIONS, *LOG_ODDS)
    for vector in GOLDEN[key]["parameters"]
]


@pytest.mark.parametrize(("key", "vector"), CASES)
def test_predictions_and_states_equal_the_reference(key, vector):
    golden, (reviews, nth) = GOLDEN[key], log_of_all_histories(FILE, key[1])
    w = tuple(golden["parameters"][vector])
    model = (
        RecurrentModel(EQUATIONS[key], w) if key in EQUATIONS else LogOddsModel(LOG_ODDS[key], w)
    )
    p = model.predict(reviews, np.arange(len(reviews)))
    # HLR's golden state is the half-life, which is no state of ours: the predictions tell it.
    states = model.states(reviews) if key in EQUATIONS and key[0] != "HLR" else {}
    for history in FILE["histories"]:
        rows = np.flatnonzero(reviews.card == history["id"])
        expected = golden["results"][str(history["id"])][vector]
        given = np.array(expected["p"], float)
        # The regression is published without predictions at no time after the review before.
        unknown = np.isnan(given) & (nth[rows] > 0)
        assert (reviews.elapsed[rows][unknown] == 0).all()
        np.testing.assert_allclose(
            p[rows][~unknown], given[~unknown], rtol=0, atol=1e-11, err_msg=history["name"]
        )
        if states:
            traced = np.stack([column[rows] for column in states.values()], axis=1)
            given = expected.get("states", [expected.get("final_state")])
            np.testing.assert_allclose(
                traced[-len(given) :], given, rtol=1e-10, atol=1e-12, err_msg=history["name"]
            )


@pytest.mark.parametrize("interval", ["days", "secs"])
def test_ebisu_equals_the_reference(interval):
    reviews, _ = log_of_all_histories(FILE, interval)
    everything = np.arange(len(reviews))
    p = EbisuModel().predict(reviews, everything)
    before, surprised = beliefs_before(reviews, everything)
    assert not surprised.any()
    for history in FILE["histories"]:
        rows = np.flatnonzero(reviews.card == history["id"])
        expected = GOLDEN["Ebisu-v2", interval]["results"][str(history["id"])]["default"]
        np.testing.assert_allclose(p[rows], np.array(expected["p"], float), rtol=0, atol=1e-9)
        # The last state is that after all reviews, which is asked for by none of them. With 60
        # digits, the reference's own search is found to end within 3e-9.
        np.testing.assert_allclose(
            before[:, rows[1:]].T, np.reshape(expected["states"][:-1], (-1, 3)), rtol=1e-8
        )


def test_default_parameters_are_the_published_ones():
    for key, golden in GOLDEN.items():
        published = golden["parameters"].get("default") if "parameters" in golden else None
        if key in EQUATIONS and key != ("FSRS-4.5", "secs"):
            assert list(EQUATIONS[key].parameters.defaults) == published, key
        if key in LOG_ODDS:
            defaults = LOG_ODDS[key].parameters.defaults
            np.testing.assert_allclose(defaults, published, atol=1e-13)
    of_fractions = GOLDEN["FSRS-4.5", "secs"]["parameters"]["default"]
    assert list(Fsrs45().defaults(whole_days=False)) == of_fractions
    # With same-day reviews in the log, DASH and DASH[MCM] start elsewhere.
    of_short = GOLDEN["DASH", "secs"]["parameters"]["default_short"]
    for algorithm in (Dash(), DashMcm()):
        assert list(algorithm.log_odds(whole_days=False).parameters.defaults) == of_short
