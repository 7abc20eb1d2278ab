"""Every algorithm that ships: its configuration, its promises, and bounds of its options."""

import inspect
import math
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hydra.utils import get_class
from omegaconf import OmegaConf
from trial import fitted

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs5
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.schedulers import Sm2Trainable
from srs_eval.errors import ConfigError
from srs_eval.evaluation.checks import check_algorithm, check_extremes
from srs_eval.evaluation.checks.toy_log import trial_task
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.runs.config import composed, option

FOLDER = Path(__file__).parents[2] / "conf/algo"
# Recorded predictions are no model: tests/data/test_recorded.py.
NAMES = sorted({path.stem for path in FOLDER.glob("*.yaml")} - {"recorded"})
# Variants: arguments whose value in the file is not the default of the class.
PRESETS = {
    "anki_sm2": {"fit"},
    "avg_smoothed": {"prior"},
    "fsrs45_default": {"fit"},
    "fsrs45_pretrain": {"fit"},
    "session_filter_small": {"features", "width", "level_width"},
}


def target_of(name):
    """Return the class of an algorithm; a preset has that of the option it begins with."""
    options = OmegaConf.load(FOLDER / f"{name}.yaml")
    return options["_target_"] if "_target_" in options else target_of(options.defaults[0])


TARGETS = {name: target_of(name) for name in NAMES}
CLASSES = {TARGETS[name]: name for name in reversed(NAMES)}


@cache
def config_of(name):
    """Return the option of an algorithm, or skip the test where PyTorch is absent."""
    if ".neural." in TARGETS[name]:
        pytest.importorskip("torch")
    return OmegaConf.to_container(composed({"algo": name})[0].algo)


def honest(algorithm):
    """Pass the honesty checks, on fewer cards than usual, and a network after two epochs."""
    brief = replace(algorithm, epochs=2) if hasattr(algorithm, "epochs") else algorithm
    check_algorithm(brief, trial_task(same_day=algorithm.same_day, cards=30))


def fitted_to(algorithm, task, fold):
    """Fit, and expect probabilities of the test rows."""
    model = fitted(algorithm, task.reviews, fold.train)
    p = model.predict(task.reviews, fold.test)
    assert ((p > 0) & (p < 1)).all()
    return model, p


def rebuilt_from_its_parameters(algorithm):
    """Predict the same where a model is built from parameters, as MLflow's are."""
    kind, task = type(algorithm), trial_task(same_day=algorithm.same_day)
    if "default" in getattr(kind, "methods", ()):
        model, p = fitted_to(algorithm, task, task.folds[0])
        options = {each: getattr(algorithm, each) for each in inspect.signature(kind).parameters}
        anew = kind(**options | {"fit": "default", "parameters": list(model.parameters)})
        _, again = fitted_to(anew, task, task.folds[0])
        np.testing.assert_allclose(again, p, rtol=0, atol=1e-12)


def fitted_in_days_in_seconds_and_to_equal_outcomes(algorithm):
    """Predict probabilities by finite parameters, also where every review ended the same."""
    for protocol in (SrsBenchmark(), SrsBenchmarkSecs()):
        task = protocol(trial_task(same_day=True).reviews, same_day=algorithm.same_day)
        for fold in task.folds:
            assert np.isfinite(fitted_to(algorithm, task, fold)[0].parameters).all()
    task = trial_task(same_day=algorithm.same_day)
    for rating in (1, 3):
        reviews = replace(task.reviews, rating=np.full(len(task.reviews), rating))
        fitted_to(algorithm, replace(task, reviews=reviews), task.folds[0])


PROMISES = (
    *(honest, rebuilt_from_its_parameters, fitted_in_days_in_seconds_and_to_equal_outcomes),
    check_extremes,
)
# Whatever is wrong for all shows with these.
QUICK = {"avg", "fsrs6", "hlr"}
LONG = {"forecast", "lstm", "lstm_published", "session_filter"}
LONGEST = {"forecast", "lstm_curves", "nn17", "transformer"} | {
    *("gru", "gru_curves", "gru_p", "lstm_published", "mixture"),
}


def tier(name, promise, otherwise):
    if otherwise or name not in CLASSES.values() or (promise is honest and name in LONGEST):
        return pytest.mark.nightly
    long = promise is honest or name in LONG or ".neural." in TARGETS[name]
    return pytest.mark.slow if long and name not in QUICK else ()


@pytest.mark.parametrize(
    ("name", "promise", "other"),
    [
        pytest.param(*case, marks=tier(*case))
        for case in product(NAMES, PROMISES, (False, True))
        if not (case[0] in PRESETS and case[2])
    ],
)
def test_an_algorithm_keeps_its_promises_as_configured_or_fitted_otherwise(name, promise, other):
    configs = [config_of(name)]
    if other:
        methods = getattr(get_class(TARGETS[name]), "methods", ())
        configs = [{**configs[0], "fit": fit} for fit in methods if fit != configs[0]["fit"]]
    for config in configs:
        promise(option("algo", config))


@pytest.mark.parametrize("name", NAMES)
def test_its_configuration_lists_every_argument_at_its_default(name):
    config = config_of(name)
    arguments = {key: value for key, value in config.items() if key != "_target_"}
    signature = inspect.signature(get_class(config["_target_"])).parameters
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
        if (argument, value) != ("start", -3):
            with pytest.raises(ConfigError):
                option("algo", {**config, argument: value})


def test_first_values_are_in_order_and_may_be_as_short_as_fractional_days_allow():
    for kind, first, is_taken in (
        *((Fsrs5, 0.0002, True), (Fsrs7, 3.0, False)),
        *((Sm2Trainable, 0.001, True), (Sm2Trainable, 0.00001, False)),
    ):
        parameters = [first, *kind().defaults(whole_days=False)[1:]]
        with nullcontext() if is_taken else pytest.raises(ConfigError):
            assert kind(parameters=parameters).parameters[0] == first
