"""Every algorithm that ships: its configuration, its promises, and bounds of its options."""

import inspect
import math
from itertools import product

import pytest
from contract import NAMES, PRESETS, PROMISES, TARGETS, built, config_of, honest
from hydra.utils import get_class, get_object

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs5, Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.recurrent.weights import Weights
from srs_eval.algorithms.schedulers import AnkiSm2, Sm2Trainable
from srs_eval.errors import ConfigError
from srs_eval.runs.config import option

# Whatever is wrong for all shows with these.
QUICK = {"avg", "fsrs6", "hlr"}
LONG = {"forecast", "lstm", "lstm_published", "session_filter"}
CLASSES = {TARGETS[name]: name for name in reversed(NAMES)}


def tier(name, promise):
    if name not in CLASSES.values():
        return pytest.mark.nightly
    long = promise is honest or name in LONG or ".neural." in TARGETS[name]
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
    plain = {key: value for key, value in arguments.items() if not isinstance(value, dict)}
    other = {key for key, value in plain.items() if value != signature[key].default}
    assert other == PRESETS.get(name, set())


# Of no option.
WRONG = (-3, math.nan, "much", "weekly", [math.nan])


@pytest.mark.parametrize("name", [name for name in NAMES if name not in PRESETS])
def test_what_an_option_cannot_take_is_refused(name):
    config = config_of(name)
    for argument, value in product(config.keys() - {"_target_"}, WRONG):
        if (argument, value) == ("start", -3):
            continue
        with pytest.raises(ConfigError):
            option("algo", {**config, argument: value})


def beginning_with(kind, first):
    return kind(parameters=[first, *kind().defaults(whole_days=False)[1:]])


def test_options_say_what_is_fitted():
    # First stabilities and intervals may be as short as fractional days allow.
    for kind, shortest in ((Fsrs5, 0.0002), (Sm2Trainable, 0.001)):
        assert beginning_with(kind, shortest).parameters[0] == shortest
    for order in (False, True):
        equations = AnkiSm2(published_order=order).equations(whole_days=True)
        assert equations.published_order == order


def gru(**options):
    pytest.importorskip("torch")
    from srs_eval.algorithms.neural.published import Gru

    return Gru(**options)


OF_GRU_P, OF_GRU = (Weights(name, (2,), (0.0,) * 39, (), ()) for name in ("gru_p", "gru"))


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda: Fsrs6(fit="newtn"), "fit=newtn is not one of: newton, reference, s0, default"),
        (lambda: beginning_with(Fsrs7, 3.0), "parameter 0 is 3.0, larger than parameter 1"),
        (lambda: beginning_with(Sm2Trainable, 0.00001), "outside 0.0001 to 100.0"),
        (lambda: gru(weights=OF_GRU_P), "weights are those of gru_p"),
        (lambda: gru(hidden=3, weights=OF_GRU), "not of gru with .3,."),
    ],
)
def test_options_that_do_not_go_together_are_refused(build, reason):
    with pytest.raises(ConfigError, match=reason):
        build()
