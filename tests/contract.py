"""What every algorithm promises, whichever way it is fitted."""

import dataclasses
import inspect
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf

from srs_eval.evaluation.checks import check_algorithm, check_extremes
from srs_eval.evaluation.checks.toy_log import trial_task
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs
from srs_eval.protocol.srs_benchmark import SrsBenchmark

_FOLDER = Path(__file__).parents[1] / "conf/algo"
# Recorded predictions are no model: tests/data/test_recorded.py.
NAMES = sorted({path.stem for path in _FOLDER.glob("*.yaml")} - {"recorded"})
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
    options = OmegaConf.load(_FOLDER / f"{name}.yaml")
    return options["_target_"] if "_target_" in options else target_of(options.defaults[0])


TARGETS = {name: target_of(name) for name in NAMES}


@cache
def config_of(name):
    """Return the configuration of an algorithm, or skip the test where PyTorch is absent."""
    from srs_eval.runs.config import composed

    if ".neural." in TARGETS[name] and find_spec("torch") is None:
        pytest.skip("needs PyTorch: pip install 'srs-eval[neural]'")
    return OmegaConf.to_container(composed({"algo": name})[0].algo)


def built(config):
    """Build the algorithm of a configuration."""
    import hydra.utils

    return hydra.utils.instantiate(config, _convert_="all")


def honest(algorithm):
    """Expect that an algorithm passes the honesty checks, a network after two epochs.

    With three quarters of the usual cards, on which every planted cheat is caught too: the checks
    take time that grows with the square of the log.
    """
    check_algorithm(
        dataclasses.replace(algorithm, epochs=2) if hasattr(algorithm, "epochs") else algorithm,
        trial_task(same_day=algorithm.same_day, cards=30),
    )


def fitted(algorithm, reviews, fold):
    """Fit, and expect probabilities of the test rows."""
    model = algorithm.fit(reviews, fold.train, np.random.default_rng(0))
    p = model.predict(reviews, fold.test)
    assert ((p > 0) & (p < 1)).all()
    return model


def runs_under_public_protocols(algorithm):
    """Expect probabilities and finite parameters in days and in seconds."""
    for protocol in (SrsBenchmark(), SrsBenchmarkSecs()):
        task = protocol(trial_task(same_day=True).reviews, same_day=algorithm.same_day)
        for fold in task.folds:
            assert np.isfinite(fitted(algorithm, task.reviews, fold).parameters).all()


def survives_equal_outcomes(algorithm):
    """Expect probabilities for a user whose every review ended the same."""
    task = trial_task(same_day=algorithm.same_day)
    for rating in (1, 3):
        reviews = dataclasses.replace(task.reviews, rating=np.full(len(task.reviews), rating))
        fitted(algorithm, reviews, task.folds[0])


def is_rebuilt_from_its_parameters(algorithm):
    """Expect a model that is built from its parameters, as MLflow's are, to predict the same."""
    kind = type(algorithm)
    names = set(inspect.signature(kind).parameters)
    if not {"fit", "parameters"} <= names or "default" not in kind.methods:
        return
    task = trial_task(same_day=algorithm.same_day)
    learned = fitted(algorithm, task.reviews, task.folds[0])
    options = {name: getattr(algorithm, name) for name in names if hasattr(algorithm, name)}
    anew = kind(**{**options, "fit": "default", "parameters": list(learned.parameters)})
    p, again = (
        model.predict(task.reviews, task.folds[0].test)
        for model in (learned, fitted(anew, task.reviews, task.folds[0]))
    )
    np.testing.assert_allclose(again, p, rtol=0, atol=1e-12)


PROMISES = (
    honest,
    is_rebuilt_from_its_parameters,
    runs_under_public_protocols,
    survives_equal_outcomes,
    check_extremes,
)
