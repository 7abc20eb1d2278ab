"""How networks are trained, and modules in the interface of srs-benchmark, against plain loops."""

import math
import pickle
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from cases import making
from hypothesis import given
from hypothesis import strategies as st
from invented import log_of

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.neural.bench_batches import batches_of, training_table
from srs_eval.algorithms.neural.bench_module import BenchModule, ModuleModel, train
from srs_eval.algorithms.neural.sequences import (
    batch_of,
    groups_of_entries,
    groups_of_targets,
    histories_before,
)
from srs_eval.algorithms.neural.training import (
    Ramps,
    Recipe,
    epochs,
    generator_from,
)
from srs_eval.algorithms.schedulers.sm2 import Sm2Trainable
from srs_eval.checks import CheckFailed
from srs_eval.checks.toy_log import trial_task
from srs_eval.config.rebuild import same_day
from srs_eval.config.targets import Builder
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ConfigError, FitError
from srs_eval.nouns import Algorithm
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.run.experiment import refuse_lookahead

PLAIN = Recipe(epochs=4, batch_size=1, learning_rate=0.1)
# A recipe, and its learning rate after a share of all steps.
RECIPES = [
    (PLAIN, lambda done: 0.05 * (1 + math.cos(math.pi * done))),
    (
        replace(PLAIN, betas=(0.8, 0.9), weight_decay=0.3, clip=0.5, schedule=lambda done: 1.0),
        lambda done: 0.1,
    ),
    (
        replace(PLAIN, exponent=1.2, learning_rate=0.7, schedule=Ramps(0.2, 0.25, 0.5)),
        lambda done: 0.7 * 16000**-0.2 * float(np.interp(done, [0, 0.25, 1], [0.2, 1, 0.5])),
    ),
]


@pytest.mark.parametrize(("recipe", "rate"), RECIPES)
def test_training_takes_the_steps_of_pytorchs_optimiser_and_tells_each_epochs_loss(recipe, rate):
    rng = np.random.default_rng(3)
    batches = [torch.tensor(rng.normal(size=(7, 4))) for _ in range(3)]
    ours = torch.tensor(rng.normal(size=4), requires_grad=True)
    theirs = ours.detach().clone().requires_grad_()

    def loss_of(weights, batch):
        return (batch @ weights - 1).square().sum()

    found = list(
        epochs([ours], batches, lambda batch: loss_of(ours, batch), recipe, generator_from(5))
    )
    optimiser = torch.optim.AdamW(
        [theirs], betas=recipe.betas, weight_decay=recipe.weight_decay, eps=1e-8
    )
    generator, losses, done = generator_from(5), [0.0] * 4, 0
    for epoch in range(4):
        for number in torch.randperm(3, generator=generator).tolist():
            optimiser.param_groups[0]["lr"] = rate(done / 12)
            optimiser.zero_grad()
            loss = loss_of(theirs, batches[number])
            loss.backward()
            torch.nn.utils.clip_grad_norm_([theirs], recipe.clip)
            optimiser.step()
            losses[epoch], done = losses[epoch] + loss.item(), done + 1
    assert ours.tolist() == pytest.approx(theirs.tolist(), abs=1e-6)
    assert found == pytest.approx(losses, rel=1e-6)


@st.composite
def logs_and_rows(draw):
    cards = draw(st.lists(st.integers(0, 4), min_size=1, max_size=30))
    rows = draw(st.lists(st.integers(0, len(cards) - 1), unique=True))
    return cards, rows


@given(logs_and_rows())
def test_every_target_is_read_after_the_earlier_reviews_of_its_card_and_nothing_else_is(case):
    cards, rows = case
    histories = histories_before(log_of(cards, range(len(cards))), np.array(rows, np.int64))
    batch = batch_of(histories, np.arange(len(histories.length)))
    n_cards = batch.review.shape[1]
    found = {}
    for target, entry in zip(batch.target.tolist(), batch.entry.tolist(), strict=True):
        step, lane = divmod(entry, n_cards)
        found[rows[target]] = batch.review[: step + 1, lane].tolist()
    before = {row: [past for past in range(row) if cards[past] == cards[row]] for row in rows}
    expected = {row: past for row, past in before.items() if past}
    assert found == expected
    read = sorted({past for earlier in expected.values() for past in earlier})
    assert sorted(histories.review.tolist()) == read
    assert sorted(batch.review[batch.review >= 0].tolist()) == read  # the others are padding


SOURCE = SyntheticUsers(users=1, seed=2, size_scale=0.1)
LOG = SOURCE.read(SOURCE.users()[0])
SM2 = BenchModule(module="bench_modules.Sm2", short=False)
FSRS6 = BenchModule(module="bench_modules.Fsrs6", config={"s_min": 0.001})
HLR = BenchModule(module="bench_modules.Hlr", short=False)
# With the trainer of the engine that does the same: the public one, or the lowest minimum.
PAIRS = {
    "sm2": (SM2, Sm2Trainable, {"fit": "reference"}),
    "fsrs6": (FSRS6, Fsrs6, {"fit": "reference"}),
    "own fit": (HLR, Hlr, {"prior_weight": 0.0}),
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
        with pytest.raises(ConfigError, match="marking is not imported"):
            same_day(each)
    assert "marking" not in sys.modules
    # What the user of a command names is used.
    named = {"_target_": kind, "module": "bench_modules.Sm2", "short": False}
    assert Builder().build(named, Algorithm) == SM2


def test_a_module_is_tried_for_lookahead_before_it_is_evaluated():
    options = {"_target_": f"{BenchModule.__module__}.BenchModule"}
    refuse_lookahead(BenchModule(), options)
    peeks = {**options, "module": "bench_modules.Peeks"}
    with pytest.raises(CheckFailed):
        refuse_lookahead(BenchModule(module="bench_modules.Peeks"), peeks)


def test_what_cannot_be_trained_is_refused_before_any_fit(transcript):
    transcript("bench_module_options", making({"BenchModule": BenchModule}))


def test_a_module_that_returns_something_else_fails_with_its_shape():
    task = trial_task(same_day=True)
    for name, options in {"Shapeless": {}, "Lost": {}, "Sm2": {"learning_rate": 1e30}}.items():
        module = BenchModule(module=f"bench_modules.{name}", **options)
        with pytest.raises(FitError):
            fit(replace(module, keep="last"), task)


def test_targets_without_history_and_with_a_longer_one_than_asked_for_are_left_out():
    histories = histories_before(log_of([1] * 6, range(6)), np.arange(6), longest=3)
    assert histories.target.tolist() == [1, 2, 3]
    assert histories.review.tolist() == [0, 1, 2]
    for rows in ([], [0]):
        histories = histories_before(log_of([1, 1], range(2)), np.array(rows, np.int64))
        assert groups_of_targets(histories, np.arange(0), per_group=512) == []
        assert groups_of_entries(histories, per_group=512) == []
