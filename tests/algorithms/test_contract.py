"""Every algorithm that ships can be built from its configuration, and keeps its promises."""

import inspect

import pytest
from contract import NAMES, PRESETS, PROMISES, built, config_of
from omegaconf import DictConfig

# The slow tests check all.
REPRESENTATIVE = {"avg", "fsrs6", "hlr"}


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in REPRESENTATIVE else pytest.mark.slow)
        for name in NAMES
    ],
)
def test_an_algorithm_as_configured_keeps_its_promises(name, promise):
    promise(built(config_of(name)))


@pytest.mark.parametrize("name", NAMES)
def test_its_configuration_lists_every_argument_at_its_default(name):
    import hydra.utils

    config = config_of(name)
    arguments = {key: value for key, value in config.items() if key != "_target_"}
    signature = inspect.signature(hydra.utils.get_object(config["_target_"])).parameters
    assert set(arguments) == set(signature)
    # What an algorithm is made of has no default.
    plain = {key: value for key, value in arguments.items() if not isinstance(value, DictConfig)}
    other = {key for key, value in plain.items() if value != signature[key].default}
    assert other == PRESETS.get(name, set())
