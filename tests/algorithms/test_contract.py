"""Every algorithm that ships can be built from its configuration, and is honest."""

import dataclasses
import inspect
from importlib.util import find_spec
from pathlib import Path

import hydra.utils
import numpy as np
import pytest
from omegaconf import OmegaConf

from srs_eval.checks import check_algorithm
from srs_eval.errors import FitSkipped
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.trial import trial_task

CONFIGS = sorted((Path(__file__).parents[2] / "conf/algo").glob("*.yaml"))


@pytest.fixture(params=CONFIGS, ids=[path.stem for path in CONFIGS])
def config(request):
    config = OmegaConf.load(request.param)
    if ".neural." in config["_target_"] and find_spec("torch") is None:
        pytest.skip("needs PyTorch: pip install 'srs-eval[neural]'")
    return config


@pytest.fixture
def algorithm(config):
    return hydra.utils.instantiate(config, _convert_="all")


def test_it_passes_the_honesty_checks(config, algorithm):
    check_algorithm(algorithm)


def test_it_runs_under_the_public_protocol(config, algorithm):
    task = SrsBenchmark()(trial_task(same_day=True).reviews, same_day=algorithm.same_day)
    for fold in task.folds:
        model = algorithm.fit(task.reviews, fold.train, np.random.default_rng(0))
        p = model.predict(task.reviews, fold.test)
        assert ((p > 0) & (p < 1)).all()
        assert np.isfinite(model.parameters).all()


@pytest.mark.parametrize("rating", [1, 3])
def test_it_survives_a_user_whose_every_review_ended_the_same(config, algorithm, rating):
    task = trial_task(same_day=algorithm.same_day)
    reviews = dataclasses.replace(task.reviews, rating=np.full(len(task.reviews), rating))
    model = algorithm.fit(reviews, task.folds[0].train, np.random.default_rng(0))
    p = model.predict(reviews, task.folds[0].test)
    assert ((p > 0) & (p < 1)).all()


def test_without_training_reviews_it_predicts_or_says_why_not(config, algorithm):
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


def test_its_configuration_lists_every_argument_at_its_default(config):
    target = hydra.utils.get_object(config["_target_"])
    arguments = inspect.signature(target).parameters
    defaults = {name: argument.default for name, argument in arguments.items()}
    assert {key: value for key, value in config.items() if key != "_target_"} == defaults


def test_its_documentation_tells_its_published_row(config):
    text = inspect.getdoc(hydra.utils.get_object(config["_target_"]))
    assert "ublished row" in " ".join(text.split())
