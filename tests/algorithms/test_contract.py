"""Every algorithm that ships: its configuration, its promises, and bounds of its options."""

import inspect
import math
from functools import partial

import hydra.utils
import numpy as np
import pytest
from cases import refusals
from contract import (
    NAMES,
    PRESETS,
    PROMISES,
    built,
    config_of,
    honest,
)
from hydra.utils import get_class, get_object
from omegaconf import DictConfig

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.combined.ensemble import Ensemble
from srs_eval.algorithms.combined.per_group import PerGroup
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs5, Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.recurrent.weights import Weights
from srs_eval.algorithms.schedulers.sbd import Sbd
from srs_eval.algorithms.schedulers.sm2 import AnkiSm2, Sm2Trainable
from srs_eval.algorithms.sessions.features import Recent
from srs_eval.algorithms.sessions.session_filter import SessionFilter
from srs_eval.engine.recency import recency_weights
from srs_eval.errors import ConfigError

# Whatever is wrong for all shows with these.
QUICK = {"avg", "fsrs6", "hlr"}
LONG = {"forecast", "lstm"}
CLASSES = {config_of(name)["_target_"]: name for name in reversed(NAMES)}


def tier(name, promise):
    if name not in CLASSES.values():
        return pytest.mark.nightly
    long = promise is honest or name in LONG or ".neural." in config_of(name)["_target_"]
    return pytest.mark.slow if long and name not in QUICK else ()


@pytest.mark.parametrize(
    ("name", "promise"),
    [
        pytest.param(name, promise, marks=tier(name, promise), id=f"{name}-{promise.__name__}")
        for name in NAMES
        for promise in PROMISES
    ],
)
def test_an_algorithm_as_configured_keeps_its_promises(name, promise):
    promise(built(config_of(name)))


@pytest.mark.nightly
@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_an_algorithm_fitted_otherwise_keeps_its_promises(name, promise):
    config = config_of(name)
    if "fit" in config and name not in PRESETS:
        for method in {*get_class(config["_target_"]).methods} - {config["fit"]}:
            promise(built({**config, "fit": method}))


@pytest.mark.parametrize("name", NAMES)
def test_its_configuration_lists_every_argument_at_its_default(name):
    config = config_of(name)
    arguments = {key: value for key, value in config.items() if key != "_target_"}
    signature = inspect.signature(get_object(config["_target_"])).parameters
    assert set(arguments) == set(signature)
    # What an algorithm is made of has no default.
    plain = {key: value for key, value in arguments.items() if not isinstance(value, DictConfig)}
    other = {key for key, value in plain.items() if value != signature[key].default}
    assert other == PRESETS.get(name, set())


NOT_FINITE = (math.nan, math.inf, "much")
ABOVE_ZERO = ((1e-9, 5), (0, -1e-9, *NOT_FINITE))
ZERO_OR_MORE = ((0, 1e-9), (-1e-9, *NOT_FINITE))
TRUE_OR_FALSE = ((True, False), ("no", 0, 1, None))
BASE = ((), ("fsrs6", 3))


def whole(least, most=None):
    return (least, *([most] if most else [])), (least - 1, 2.5, *([most + 1] if most else []))


# option, or option of one algorithm -> (what is taken, what is refused)
BOUNDS = {
    **dict.fromkeys(("binary", "published_order", "monotone", "card_ids"), TRUE_OR_FALSE),
    **dict.fromkeys(("width", "level_width", "session_width"), ABOVE_ZERO),
    **dict.fromkeys(("learning_rate", "rate", "blend.prior"), ABOVE_ZERO),
    **dict.fromkeys(("l2", "drift", "alpha", "penalty"), ZERO_OR_MORE),
    **dict.fromkeys(("most_trees", "smallest_leaf", "hidden"), whole(1)),
    **dict.fromkeys(("epochs", "batch_size", "outer_steps"), whole(1)),
    "fit": ((), ("newtn", None)),
    "parameters": ((None,), ([], [math.nan], ["x"])),
    "recency": (("none", "mild", "steep", "quartic"), ("weekly",)),
    "half_life": ((0.5,), (0, -1, *NOT_FINITE)),
    "prior_weight": ((None, 0, 1e-9), (-1e-9, *NOT_FINITE)),
    "avg.prior": ((0, 3.5), (-1, *NOT_FINITE)),
    "session_filter.prior": (({}, {"bias": 1.0}), ({"no such": 1.0},)),
    "base": BASE,
    "every": (("day", "review"), ("week",)),
    "held_out": ((0, 0.99), (1, -0.01, math.nan)),
    "leaves": whole(2),
    "trees": whole(1, 2_000),
    "p": ((1e-9, 0.999), (0, 1, 1.5, "0.9")),
    "members": ((), ({}, ["fsrs6"], {"a": "fsrs6"})),
    "weights": ((None,), ("no/such.safetensors",)),
    "ensemble.weights": (("fitted", "fixed", "equal"), ("random",)),
    "shares": (({},), ({"a": 1.0}, {"fsrs6": 1.0, "gru": math.nan})),
    "trust": ((1e-9, 1), (0, 1.001, *NOT_FINITE)),
    "device": (("cpu",), ("tpu",)),
    "lstm.hidden": whole(1, 16),
    "pull": ((None, 0), (-1, *NOT_FINITE)),
    "steps": ((None, *whole(1)[0]), whole(1)[1]),
    "start": ((-3, 0), NOT_FINITE),
    "group": (("deck", "preset", "template"), ("tag",)),
    "pooling": (("partial", "none"), ("full",)),
    "fewest": ((None, 1), (0, 1.5)),
    "skip": ((0, 3), (-1, 1.5, True, "all")),
    "features": (("full", "small"), ("tiny",)),
    "extra": (({},), ({"mine": Hlr()},)),
    "module": ((), ()),
    "short": TRUE_OR_FALSE,
    "keep": (("best", "last"), ("first",)),
    "config": (({}, {"hidden": 8}), ("hidden", [8])),
}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in PRESETS])
def test_each_option_takes_what_is_in_its_bounds_and_refuses_what_is_not(name):
    made = hydra.utils.instantiate(
        {**config_of(name), "_target_": "builtins.dict"}, _convert_="all"
    )
    build = partial(hydra.utils.get_class(config_of(name)["_target_"]), **made)
    for option in made:
        taken, refused = BOUNDS.get(f"{name}.{option}") or BOUNDS[option]
        for value in taken:
            build(**{option: value})
        for value in refused:
            with pytest.raises(ConfigError) as told:
                build(**{option: value})
            owner = "" if option == "weights" else f"{getattr(build.func, 'name', name)}: "
            assert str(told.value).startswith(owner)
            assert option in str(told.value).removeprefix(owner), (option, value)


def beginning_with(kind, first):
    return kind(parameters=[first, *kind().defaults(whole_days=False)[1:]])


def test_options_say_what_is_fitted_and_how():
    # First stabilities and intervals may be as short as fractional days allow.
    for kind, shortest in ((Fsrs5, 0.0002), (Sm2Trainable, 0.001)):
        assert beginning_with(kind, shortest).parameters[0] == shortest
    for algorithm, recency in (
        *((Fsrs6(fit=method), "mild") for method in ("newton", "lbfgs")),
        (Fsrs6(fit="reference"), "none"),
        *((Sbd(), "steep"), (Sbd(recency="none"), "none")),
    ):
        expected = recency_weights(9, recency, algorithm.half_life)
        np.testing.assert_array_equal(algorithm.weights(9), expected)
    for order in (False, True):
        equations = AnkiSm2(published_order=order).equations(whole_days=True)
        assert equations.published_order == order


class Ordered(Fsrs7):
    methods = ("lbfgs",)


def gru(**options):
    pytest.importorskip("torch")
    from srs_eval.algorithms.neural.published import Gru

    return Gru(**options)


TWO = {"a": Hlr(), "b": Fsrs6()}
OF_GRU_P, OF_GRU = (Weights(name, (2,), (0.0,) * 39, (), ()) for name in ("gru_p", "gru"))
# What each option would take for itself, and not together.
REFUSED = {
    "fits of FSRS-6": lambda: Fsrs6(fit="newtn"),
    "parameters in the wrong order": lambda: beginning_with(Fsrs7, 3.0),
    "order, and bounds alone": lambda: Ordered(fit="lbfgs"),
    "too short an interval": lambda: beginning_with(Sm2Trainable, 0.00001),
    "idle prior": lambda: Fsrs6(fit="reference", prior_weight=5),
    "idle recency": lambda: Fsrs6(fit="s0", recency="mild"),
    "idle half-life": lambda: Fsrs6(half_life=0.1),
    "share of a stranger": lambda: Ensemble(TWO, shares={"a": 1.0, "c": 1.0}),
    "equal shares": lambda: Ensemble(TWO, weights="equal", shares={"a": 1.0, "b": 1.0}),
    "member with a slash": lambda: Ensemble({"a/b": Hlr()}),
    "no equations to pool": lambda: PerGroup(Average()),
    "reference is not pooled": lambda: PerGroup(Fsrs6(fit="reference")),
    "no prior to pool by": lambda: PerGroup(Fsrs6(prior_weight=0)),
    "feature of a taken name": lambda: SessionFilter(Hlr(), extra={"recent_5": Recent()}),
    "several options at once": lambda: gru(hidden=0, epochs=-1, learning_rate=math.nan),
    "weights of another network": lambda: gru(weights=OF_GRU_P),
    "weights of another size": lambda: gru(hidden=3, weights=OF_GRU),
}


@pytest.mark.filterwarnings("error")
def test_what_is_refused_is_told_with_what_to_do(golden_text):
    golden_text("algorithm_options", refusals(REFUSED, ConfigError))
