"""Every algorithm that ships can be built from its configuration, and is honest."""

import dataclasses
import inspect
from importlib.util import find_spec
from pathlib import Path

import hydra.utils
import numpy as np
import pytest
from omegaconf import DictConfig, OmegaConf

from srs_eval.checks import check_algorithm
from srs_eval.checks.toy_log import trial_task
from srs_eval.errors import FitSkipped
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs
from srs_eval.protocol.srs_benchmark import SrsBenchmark

CONFIGS = {
    path.stem: OmegaConf.load(path)
    for path in sorted((Path(__file__).parents[2] / "conf/algo").glob("*.yaml"))
}
# Variants: arguments whose value in the file is not the default of the class.
PRESETS = {
    "anki_sm2": {"fit"},
    "boosted_trees_monotone": {"monotone"},
    "fsrs45_default": {"fit"},
    "fsrs45_pretrain": {"fit"},
    "fsrs7_withdrawn": {"fit"},
    "mixture": {"weights"},
    "session_filter_small": {"features", "width", "level_width"},
}


def loadable(config):
    if ".neural." in config["_target_"] and find_spec("torch") is None:
        pytest.skip("needs PyTorch: pip install 'srs-eval[neural]'")
    return config


def ways_to_fit(quick=lambda name: ".neural." not in CONFIGS[name]["_target_"]):
    """Every algorithm as it is configured, and in every other way it can be fitted.

    The quick tests have those of the given names as configured, and all ways to fit FSRS-6.
    """
    for name, config in CONFIGS.items():
        marks = [] if quick(name) else [pytest.mark.slow]
        yield pytest.param(config, id=name, marks=marks)
        if "fit" in config and name not in PRESETS:
            marks = [] if quick(name) and name == "fsrs6" else [pytest.mark.slow]
            for method in hydra.utils.get_class(config["_target_"]).methods:
                if method != config["fit"]:
                    yield pytest.param(
                        {**config, "fit": method}, id=f"{name}-{method}", marks=marks
                    )


@pytest.fixture(params=CONFIGS)
def name(request):
    loadable(CONFIGS[request.param])
    return request.param


@pytest.fixture(params=ways_to_fit())
def algorithm(request):
    return built(request.param)


def built(config):
    return hydra.utils.instantiate(loadable(config), _convert_="all")


# One of each family; the slow tests check all.
REPRESENTATIVE = {"avg", "moving_avg", "fsrs6", "anki_sm2", "hlr", "logistic", "dash", "per_group"}
REPRESENTATIVE |= {"session_filter_small"}


@pytest.mark.parametrize("config", list(ways_to_fit(REPRESENTATIVE.__contains__)))
def test_it_passes_the_honesty_checks(config):
    check_algorithm(built(config))


@pytest.mark.parametrize("protocol", [SrsBenchmark(), SrsBenchmarkSecs()], ids=["days", "seconds"])
def test_it_runs_under_the_public_protocols(algorithm, protocol):
    task = protocol(trial_task(same_day=True).reviews, same_day=algorithm.same_day)
    for fold in task.folds:
        model = algorithm.fit(task.reviews, fold.train, np.random.default_rng(0))
        p = model.predict(task.reviews, fold.test)
        assert ((p > 0) & (p < 1)).all()
        assert np.isfinite(model.parameters).all()


@pytest.mark.parametrize("rating", [1, 3])
def test_it_survives_a_user_whose_every_review_ended_the_same(algorithm, rating):
    task = trial_task(same_day=algorithm.same_day)
    reviews = dataclasses.replace(task.reviews, rating=np.full(len(task.reviews), rating))
    model = algorithm.fit(reviews, task.folds[0].train, np.random.default_rng(0))
    p = model.predict(reviews, task.folds[0].test)
    assert ((p > 0) & (p < 1)).all()


def test_without_training_reviews_it_predicts_or_says_why_not(algorithm):
    task = trial_task(same_day=algorithm.same_day)
    nothing = np.array([], np.int64)
    try:
        model = algorithm.fit(task.reviews, nothing, np.random.default_rng(0))
    except FitSkipped as skipped:
        reason = str(skipped)
    else:
        reason = "training review, none needed"
        assert np.isfinite(model.predict(task.reviews, task.folds[0].test)).all()
    assert "training review" in reason


def test_its_configuration_lists_every_argument_at_its_default(name):
    arguments = {key: value for key, value in CONFIGS[name].items() if key != "_target_"}
    signature = inspect.signature(hydra.utils.get_object(CONFIGS[name]["_target_"])).parameters
    assert set(arguments) == set(signature)
    # What an algorithm is made of has no default.
    plain = {key: value for key, value in arguments.items() if not isinstance(value, DictConfig)}
    other = {key for key, value in plain.items() if value != signature[key].default}
    assert other == PRESETS.get(name, set())


def test_its_documentation_tells_its_published_row(name):
    text = inspect.getdoc(hydra.utils.get_object(CONFIGS[name]["_target_"]))
    assert "ublished row" in " ".join(text.split())
