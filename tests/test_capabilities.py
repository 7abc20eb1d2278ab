"""Optional methods are recognised by their protocols, and misspellings of them are named."""

import pytest

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.nouns import FittingInSteps, WarmStarting
from srs_eval.nouns.capabilities import CAPABILITIES, misspelt


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("fit_in_step", "fit_in_steps"),
        ("predict_att", "predict_at"),
        ("pre_train", "pretrain"),
        ("re_fit", "refit"),
    ],
)
def test_a_misspelt_capability_is_named(name, meant):
    algorithm = type("Mine", (Average,), {name: lambda self: None})()
    (problem,) = misspelt(algorithm)
    assert name in problem
    assert meant in problem


@pytest.mark.parametrize("name", [*CAPABILITIES, "fits", "predict_all", "parameters", "_refits"])
def test_other_names_are_not_taken_for_one(name):
    assert misspelt(type("Mine", (Average,), {name: lambda self: None})()) == []
    assert misspelt(type("Mine", (Average,), {"refits": 3})()) == []  # no method


def test_capabilities_are_checked_by_their_protocols():
    assert isinstance(Fsrs6(), WarmStarting)
    assert not isinstance(Average(), WarmStarting | FittingInSteps)
    disabled = type("Mine", (Fsrs6,), {"refit": None})()
    assert not isinstance(disabled, WarmStarting)
