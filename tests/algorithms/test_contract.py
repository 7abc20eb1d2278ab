"""Every algorithm that ships: its configuration, its promises, and bounds of its options."""

import inspect
import math
from collections import defaultdict
from functools import partial

import hydra.utils
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

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs5, Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.recurrent.weights import Weights
from srs_eval.algorithms.schedulers.sm2 import AnkiSm2, Sm2Trainable
from srs_eval.algorithms.sessions.features import Recent
from srs_eval.algorithms.sessions.session_filter import SessionFilter
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
    plain = {key: value for key, value in arguments.items() if not isinstance(value, dict)}
    other = {key for key, value in plain.items() if value != signature[key].default}
    assert other == PRESETS.get(name, set())


# What is tried for every option; what of it is taken is written down for review.
VALUES = (
    *(None, True, False, -3, -1e-9, 0, 1e-9, 0.5, 0.999, 1, 1.5, 2, 3, 16, 17, 2001, math.nan),
    *(math.inf, "much", "0.9", [], {}, [math.nan], "fsrs6", "newton", "newtn", "default"),
    *("reference", "s0", "none", "mild", "steep", "quartic", "exponential", "weekly", "full"),
    *("small", "day", "review", "deck", "preset", "template", "tag", "partial", "best", "last"),
    *("first", "fitted", "fixed", "equal", "cpu", "tpu"),
)


def taken(name, option, build):
    """Tell what an option takes, and expect that numbers and words are refused by its name."""
    for value in VALUES:
        try:
            build(**{option: value})
        except ConfigError as error:
            told = str(error)
            owner = f"{getattr(build.func, 'name', name)}: "
            assert option in ("weights", "module") or told.startswith(owner), told
            assert option in told.removeprefix(owner), told
        except (AttributeError, TypeError, ValueError):  # of what is a list, a table or a class
            continue
        else:
            yield str(value)


def test_each_option_takes_what_is_in_its_bounds_and_refuses_what_is_not(golden_text):
    pytest.importorskip("torch")
    algorithms = defaultdict(list)
    for name in (name for name in NAMES if name not in PRESETS):
        config = {**config_of(name), "_target_": "builtins.dict"}
        made = hydra.utils.instantiate(config, _convert_="all")
        build = partial(get_class(config_of(name)["_target_"]), **made)
        for option in made:
            algorithms[" ".join([f"{option}:", *taken(name, option, build)])].append(name)
    told = [f"{option}\n  {' '.join(names)}\n" for option, names in algorithms.items()]
    golden_text("algorithm_bounds", "".join(told))


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
# What each option would take for itself, and not together.
REFUSED = {
    "fits of FSRS-6": lambda: Fsrs6(fit="newtn"),
    "parameters in the wrong order": lambda: beginning_with(Fsrs7, 3.0),
    "too short an interval": lambda: beginning_with(Sm2Trainable, 0.00001),
    "feature of a taken name": lambda: SessionFilter(Hlr(), extra={"recent_5": Recent()}),
    "weights of another network": lambda: gru(weights=OF_GRU_P),
    "weights of another size": lambda: gru(hidden=3, weights=OF_GRU),
}


@pytest.mark.filterwarnings("error")
def test_what_is_refused_is_told_with_what_to_do(golden_text):
    golden_text("algorithm_options", refusals(REFUSED, ConfigError))
