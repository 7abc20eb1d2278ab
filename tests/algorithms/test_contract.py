"""Every algorithm that ships can be built from its configuration, and keeps its promises."""

import inspect

import pytest
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
