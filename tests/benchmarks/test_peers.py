"""The benchmarks: what they hand to other people's programs, and how they measure."""

from __future__ import annotations

import operator
import os
import time
from importlib.util import find_spec

import numpy as np
import pytest
from measure import clocked, in_process
from peers import fsrs_rs, log_loss, optimizer_frame
from workloads import of_reviews, synthetic_workload

from srs_eval.algorithms.fsrs.fsrs_rs import FsrsRs

needs_rs = pytest.mark.skipif(
    find_spec("fsrs_rs_python") is None,
    reason="needs the Rust optimiser: pip install 'srs-eval[rs]'",
)
needs_torch = pytest.mark.skipif(
    find_spec("torch") is None, reason="needs PyTorch: pip install 'srs-eval[neural]'"
)


@pytest.fixture
def workload(make_log):
    return of_reviews("invented", make_log(seed=1, user="ada"))


@pytest.mark.slow
def test_another_process_brings_the_result_its_time_and_its_memory():
    before = dict(os.environ)
    slept = in_process(time.sleep, 0.05)
    assert slept.result is None
    assert slept.cpu < 0.05 <= slept.wall
    small, large = (in_process(operator.mul, b"x", 1_000_000 * size).peak_bytes for size in (1, 60))
    assert 50e6 < large - small < 80e6
    assert dict(os.environ) == before


def test_another_process_runs_one_thread():
    assert in_process(os.getenv, "OMP_NUM_THREADS").result == "1"


def test_the_quickest_of_several_times_counts():
    naps = iter([0.03, 0.0, 0.02])
    done = clocked(lambda: time.sleep(next(naps)), repeats=3)
    assert done.cpu < 0.02
    assert next(naps, None) is None


def test_a_simulated_log_has_the_size_it_is_named_after():
    workload = synthetic_workload(2_000)
    assert workload.name == "synthetic 2k"
    assert 1_800 <= len(workload.reviews) <= 2_000
    assert workload.train[-1] < workload.test[0]


@needs_rs
@pytest.mark.parametrize("card_ids", [False, True])
def test_the_rust_optimiser_learns_what_it_learns_as_an_algorithm(workload, card_ids):
    fit = fsrs_rs(workload, card_ids=card_ids, repeats=2)
    rng = np.random.default_rng(0)
    model = FsrsRs(card_ids=card_ids).fit(workload.reviews, workload.train, rng)
    assert fit.parameters == model.parameters
    assert fit.wall_seconds > 0
    assert min(fit.cpu_seconds, fit.preparing_seconds) >= 0  # clocks of the CPU may tick slowly
    assert 0 < log_loss(workload, fit.parameters) < 1


def history_of(workload, row):
    """Elapsed days and ratings of the card's reviews before a row."""
    reviews = workload.reviews
    earlier = np.flatnonzero(reviews.card[:row] == reviews.card[row])
    return np.maximum(reviews.elapsed_days[earlier], 0).tolist(), reviews.rating[earlier].tolist()


def test_fsrs_optimizer_reads_histories_as_text(workload):
    frame = optimizer_frame(workload)
    assert len(frame) == len(workload.train)
    for row, line in zip(workload.train, frame.itertuples(), strict=True):
        texts = [",".join(map(str, column)) for column in history_of(workload, row)]
        assert [line.t_history, line.r_history] == texts
        assert line.delta_t == workload.reviews.elapsed_days[row]
        assert line.y == workload.reviews.recalled[row]
        assert line.i == workload.nth_review[row]


@needs_torch
@pytest.mark.slow
def test_the_plain_loop_walks_every_history_and_learns(workload):
    from padded_loop import padded_batches, train

    walked = []
    batches = padded_batches(workload)
    for history, length, elapsed, *_ in batches:
        for place, steps in enumerate(length.tolist()):
            mine = history[:steps, place].T.int().tolist()
            walked.append((*mine, int(elapsed[place])))
            assert (history[steps:, place] == 0).all()
    expected = [
        (*history_of(workload, row), workload.reviews.elapsed_days[row]) for row in workload.train
    ]
    assert sorted(walked) == sorted(expected)
    learned = tuple(train(batches).tolist())
    assert np.isfinite(learned).all()
    assert 0 < log_loss(workload, learned) < 1
