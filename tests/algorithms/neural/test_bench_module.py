"""Modules in the interface of srs-benchmark: the same equations in the engine, and refusals."""

import pickle
import sys
from dataclasses import replace

import numpy as np
import pytest

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.neural.bench_batches import batches_of, training_table
from srs_eval.algorithms.neural.bench_module import BenchModule, ModuleModel, train
from srs_eval.algorithms.schedulers.sm2 import Sm2Trainable
from srs_eval.checks import CheckFailed, check_algorithm
from srs_eval.checks.toy_log import trial_task
from srs_eval.config.rebuild import same_day
from srs_eval.config.targets import Builder
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ConfigError, FitError
from srs_eval.nouns import Algorithm
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.run.outside import refuse_lookahead
from srs_eval.submit.logs_check import is_own, own_builder

SOURCE = SyntheticUsers(users=1, seed=2, size_scale=0.1)
LOG = SOURCE.read(SOURCE.users()[0])
SM2 = BenchModule(module="bench_modules.Sm2", short=False)
FSRS6 = BenchModule(module="bench_modules.Fsrs6", config={"s_min": 0.001})
HLR = BenchModule(module="bench_modules.Hlr", short=False)
# With the trainer of the engine that does the same: the public one, or the lowest minimum.
PAIRS = {
    "sm2": (SM2, Sm2Trainable, {"fit": "reference"}),
    "fsrs6": (FSRS6, Fsrs6, {"fit": "reference"}),
    "own fit": (HLR, Hlr, {"fit": "lbfgs", "prior_weight": 0.0}),
}


def fit(algorithm, task, rows=None):
    rows = task.folds[-1].train if rows is None else rows
    return algorithm.fit(task.reviews, rows, np.random.default_rng(0))


@pytest.mark.parametrize("name", PAIRS)
def test_it_predicts_and_learns_what_the_same_equations_do_in_the_engine(name):
    module, kind, options = PAIRS[name]
    for protocol in (SrsBenchmark(), SrsBenchmarkSecs()):
        task = protocol(LOG, same_day=module.same_day)
        reviews, test = task.reviews, task.folds[-1].test
        begun = ModuleModel(module.constructed(whole_days=reviews.whole_days).eval())
        elapsed = np.outer(reviews.elapsed[test], [0.5, 1.0, 3.0])
        engine = kind(fit="default", parameters=begun.parameters)
        expected = fit(engine, task).predict_at(reviews, test, elapsed)
        assert begun.predict_at(reviews, test, elapsed) == pytest.approx(expected, abs=1e-5)
        if reviews.whole_days:
            # Parameters of the public trainer are rounded to four decimals.
            learned = fit(module, task).parameters
            assert learned == pytest.approx(fit(kind(**options), task).parameters, abs=1e-3)
            assert learned != begun.parameters


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_it_keeps_the_promises_of_every_algorithm(name):
    check_algorithm(PAIRS[name][0], trial_task(same_day=PAIRS[name][0].same_day, cards=30))


def test_recent_reviews_count_more_where_that_is_asked_for():
    task = SrsBenchmark()(LOG, same_day=False)
    for one in (SM2, HLR):
        even, mild = fit(one, task), fit(replace(one, recency="mild"), task)
        assert (even.parameters == mild.parameters) == (one is HLR)  # whose fit reads no weights


def test_it_is_given_the_table_of_training_reviews_that_modules_there_read():
    task = trial_task(same_day=True)
    reviews, rows = task.reviews, task.folds[0].train
    table = training_table(reviews, rows, np.linspace(1, 2, len(rows)))
    for at in (0, 7, len(rows) - 1):
        row, found = rows[at], table.iloc[at]
        before = np.flatnonzero(reviews.card[:row] == reviews.card[row])
        later = 1 + (reviews.elapsed_days[[*before, row]] > 0).sum()
        history = np.c_[np.maximum(reviews.elapsed[before], 0), reviews.rating[before]]
        assert (found["tensor"].numpy() == history).all()
        assert (found["i"], found["y"]) == (later, reviews.recalled[row])
        assert found["first_rating"] == str(reviews.rating[before[0]])
    first, *_, last = batches_of(table, 50, 8)
    assert first.seq_lens.max() <= last.seq_lens.min() <= last.seq_lens.max() <= 8
    assert not first.sequences[first.seq_lens[0] :, 0].any()
    assert float(last.weights.max()) <= 2.0


def test_the_epoch_of_the_lowest_training_loss_is_kept_or_the_last():
    task = trial_task(same_day=True)
    batches = batches_of(training_table(task.reviews, task.folds[-1].train, None), 64, 64)

    def lost(rate, keep):
        module = BenchModule().constructed(whole_days=True)
        return train(module, batches, rate, 2, keep=keep)

    begun, learned = lost(1e-9, "last"), lost(0.04, "last")
    assert learned < begun < lost(4.0, "last")  # such a rate leads nowhere
    assert (lost(0.04, "best"), lost(4.0, "best")) == pytest.approx((learned, begun))


def test_too_little_to_learn_from_leaves_the_module_as_it_is():
    task = SrsBenchmark()(LOG, same_day=True)
    for module in (SM2, FSRS6, HLR):
        model = fit(module, task, np.empty(0, np.int64))
        begun = ModuleModel(module.constructed(whole_days=True))
        assert (model.learned.fallback, model.parameters) == (True, begun.parameters)


def test_neither_a_worker_nor_a_first_review_is_a_difficulty():
    task = SrsBenchmark()(LOG, same_day=True)
    model = pickle.loads(pickle.dumps(fit(FSRS6, task)))
    rows = np.flatnonzero(task.reviews.elapsed_days < 0)[:3]
    assert np.isnan(model.predict(task.reviews, rows)).all()


def test_a_module_of_a_strangers_file_is_not_imported(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "marking.py").write_text("open('PWNED', 'w').close()\n", encoding="utf-8")
    kind = f"{BenchModule.__module__}.BenchModule"
    options = {"_target_": kind, "module": "marking.X"}
    inside = {"_target_": "srs_eval.algorithms.combined.blend.Blend", "base": options}
    for each in (options, inside):
        assert not is_own(each)
        for build in (same_day, lambda given: own_builder().build(given, Algorithm)):
            with pytest.raises(ConfigError, match="marking is not imported"):
                build(each)
    assert "marking" not in sys.modules
    # Those of srs_eval, and what the user of a command names, are used.
    assert is_own({"_target_": kind})
    named = {"_target_": kind, "module": "bench_modules.Sm2", "short": False}
    assert Builder().build(named, Algorithm) == SM2


def test_a_module_is_tried_for_lookahead_before_it_is_evaluated():
    options = {"_target_": f"{BenchModule.__module__}.BenchModule"}
    refuse_lookahead(BenchModule(), options)
    peeks = {**options, "module": "bench_modules.Peeks"}
    with pytest.raises(CheckFailed):
        refuse_lookahead(BenchModule(module="bench_modules.Peeks"), peeks)


@pytest.mark.parametrize(
    "options",
    [
        *({"module": name} for name in ("nowhere.Model", "bench_modules.Sm3", "Sm2", "os.path")),
        *({"module": name} for name in ("bench_modules.NotAModule", "os.path.join")),
        *({"epochs": 0}, {"learning_rate": -1.0}, {"recency": "newest"}, {"keep": "first"}),
        {"module": "bench_modules.Hlr", "epochs": 3},
    ],
)
def test_what_cannot_be_trained_is_refused_before_any_fit(options):
    with pytest.raises(ConfigError):
        BenchModule(**options)


def test_a_module_that_returns_something_else_fails_with_its_shape():
    task = trial_task(same_day=True)
    for name, options in {"Shapeless": {}, "Lost": {}, "Sm2": {"learning_rate": 1e30}}.items():
        module = BenchModule(module=f"bench_modules.{name}", **options)
        with pytest.raises(FitError):
            fit(replace(module, keep="last"), task)
