"""One side of the median interval against the other, compared with loops."""

from dataclasses import replace
from pathlib import Path
from statistics import median_low

import numpy as np
import pytest
from cases import rest_nightly
from contract import NAMES, built, config_of
from hypothesis import given, settings
from hypothesis import strategies as st

from srs_eval.algorithms.baselines import Average
from srs_eval.errors import FitSkipped
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.protocol.shifted import Shifted
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.validation import Validation

WAYS = [("short", "long"), ("long", "short"), ("both", "long"), ("both", "short")]


def plain_folds(log, same_day, train, test, median):
    """Split by the definition, review by review."""
    task = SrsBenchmark()(log, same_day=same_day)
    days, cards = task.reviews.elapsed_days.tolist(), task.reviews.card.tolist()
    for block in task.folds:
        known = {}
        for row in block.train.tolist():
            known.setdefault(cards[row] if median == "card" else "all", []).append(days[row])

        def side(row, known=known):
            own = known.get(cards[row] if median == "card" else "all")
            return own and ("long" if days[row] > median_low(own) else "short")

        learned = [row for row in block.train.tolist() if side(row) not in (test, None)]
        scored = [row for row in block.test.tolist() if side(row) == test]
        if train == "both":
            step = (len(block.train) - 1) / max(len(learned) - 1, 1)
            learned = [int(block.train[round(step * i)]) for i in range(len(learned))]
        if learned and scored:
            yield learned, scored


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    cards=st.sampled_from([30, 80, 250]),
    reviews_per_card=st.sampled_from([2, 3, 9]),
    intervals=st.sampled_from([(1,), (1, 2), (1, 2, 3, 7), (3, 3, 3, 5, 40)]),
    way=st.sampled_from(WAYS),
    median=st.sampled_from(["user", "card"]),
    same_day=st.booleans(),
)
def test_any_log_is_split_as_the_loops_split_it(make_log, way, median, same_day, **shape):
    log = make_log(**shape, same_day=0.2)
    try:
        expected = list(plain_folds(log, same_day, *way, median))
    except FitSkipped:
        return
    protocol = Shifted(*way, median=median)
    try:
        task = protocol(log, same_day=same_day)
    except FitSkipped as skipped:
        assert not expected
        used, task = 0, skipped
    else:
        found = [(fold.train.tolist(), fold.test.tolist()) for fold in task.folds]
        assert found == expected
        assert [fold.number for fold in task.folds] == list(range(len(found)))
        used = len({row for parts in found for part in parts for row in part})
    assert used + sum(task.dropped.values()) + sum(task.unscored.values()) == len(log)


def test_rows_for_choosing_options_are_scored_once_and_all_rows_are_fitted_at_the_end(
    make_log, logs_of
):
    log = make_log(cards=200, intervals=(1, 2, 3, 7, 20))
    task = Validation(Shifted())(log, same_day=False)
    tested = np.concatenate([fold.test for fold in task.folds])
    assert len(tested) == len(set(tested)) > 0
    shifted = Shifted()(log, same_day=False)
    work = EvaluateUser(logs_of(log), Average(), Shifted(), seed=0, curves=0)
    used = {row for fold in shifted.folds for row in (*fold.train, *fold.test)}
    assert work.fit_to_everything(log.user).fit.n_train == len(used)


@pytest.mark.parametrize("median", ["user", "card"])
def test_a_log_with_one_interval_has_no_other_side(make_log, median):
    with pytest.raises(FitSkipped) as caught:
        Shifted(median=median)(make_log(cards=100, intervals=(3,)), same_day=False)
    assert caught.value.dropped["outside both parts of the shifted split"] > 100


# Networks of PyTorch take minutes.
CONF = Path(__file__).parents[2] / "conf" / "algo"
SLOW = {name for name in NAMES if ".neural." in (CONF / f"{name}.yaml").read_text("utf-8")}
LEARNING = sorted({*NAMES} - SLOW - {"oracle"}, key=lambda name: (name != "fsrs6", name))


@pytest.mark.parametrize("name", rest_nightly(LEARNING))
def test_no_fit_learns_from_the_outcomes_of_the_other_side(make_log, name):
    algorithm = built(config_of(name))
    log = make_log(cards=120, intervals=(1, 2, 3, 7, 20))
    task = Shifted()(log, same_day=algorithm.same_day)
    fold, reviews = task.folds[-1], task.reviews
    known = reviews.take(np.arange(fold.train[-1] + 1))
    # An outcome that is in no history of a training row: there is none after it, of the same card.
    last = {int(known.card[row]): row for row in fold.train.tolist()}
    later = [row > last.get(card, -1) for row, card in enumerate(known.card.tolist())]
    other = np.array(later) & ~np.isin(np.arange(len(known)), fold.train)
    turned = replace(known, rating=np.where(other, 4 - known.rating.clip(1, 3), known.rating))
    assert (turned.recalled != known.recalled).sum() > 50
    one, two = (
        algorithm.fit(each, fold.train.copy(), np.random.default_rng(0)).predict(reviews, fold.test)
        for each in (known, turned)
    )
    np.testing.assert_array_equal(one, two)
