"""Optional methods are recognised by their protocols, and misspellings of them are named."""

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.nouns import FittingInSteps, WarmStarting
from srs_eval.nouns.capabilities import CAPABILITIES, misspelt

MEANT = {"fit_in_step": "fit_in_steps", "predict_att": "predict_at", "pre_train": "pretrain"}


def with_method(name):
    return type("Mine", (Average,), {name: lambda self: None})()


def test_a_misspelt_capability_is_named_and_other_names_are_not_taken_for_one():
    for name, meant in {**MEANT, "re_fit": "refit"}.items():
        (problem,) = misspelt(with_method(name))
        assert name in problem
        assert meant in problem
    for name in (*CAPABILITIES, "fits", "predict_all", "parameters", "_refits"):
        assert misspelt(with_method(name)) == []
    assert misspelt(type("Mine", (Average,), {"refits": 3})()) == []  # no method


def test_capabilities_are_checked_by_their_protocols():
    assert isinstance(Fsrs6(), WarmStarting)
    assert not isinstance(Average(), WarmStarting | FittingInSteps)
    assert not isinstance(type("Mine", (Fsrs6,), {"refit": None})(), WarmStarting)
