"""Logistic regression: features by a plain loop, and the public trainer by PyTorch."""

import dataclasses

import numpy as np
import pytest

from srs_eval.algorithms.features.logistic import Logistic, LogisticEquations
from srs_eval.algorithms.features.logistic_features import features, on_same_day
from srs_eval.algorithms.history import history_of
from srs_eval.checks.toy_log import trial_task
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised, SrsBenchmarkSecs
from srs_eval.protocol.srs_benchmark import SrsBenchmark

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of the trainer")

LOG = trial_task(same_day=True).reviews
PROTOCOLS = {
    "days": SrsBenchmark(),
    "seconds": SrsBenchmarkSecs(),
    "equalised": SrsBenchmarkEqualised(),
}
SECONDS = SrsBenchmarkSecs()(LOG, same_day=True)
TRAIN = SECONDS.folds[-1].train


def squeezed(days):
    return (np.log(days + 1e-5) + 1.3) / 5


def plain_features(reviews, row):
    """Features of one review, by walking along its card."""
    rows = np.flatnonzero(reviews.card[: row + 1] == reviews.card[row])
    counted = [nth for nth in range(1, len(rows)) if reviews.elapsed[rows[nth]] > 0]
    counts = dict.fromkeys(("sf", "sp", "nf", "np", "n0", "n1"), 0)
    e, e_days, total, mark, ever = 0.0, 0, 0.0, 0.0, False
    for before, nth in zip([0, *counted], counted, strict=False):
        first = before == 0
        r = reviews.rating[rows[nth - 1]]
        if not first:
            e, e_days = reviews.elapsed[rows[before]], reviews.elapsed_days[rows[before]]
        total += e
        if e_days > 0:
            counts["nf" if r == 1 else "np"] += 1
        elif not first:
            counts["sf" if r == 1 else "sp"] += 1
        counts["n1" if e_days > 0 else "n0"] += 1
        ever = ever or r > 1
        if r == 1 or first:
            mark = total
    f, since = reviews.rating[rows[0]], total - mark
    t, sd = squeezed(reviews.elapsed[row]), float(reviews.elapsed_days[row] == 0)
    log, other = np.log1p, 1 - sd
    sf, sp, nf, passes = (log(counts[key]) for key in ("sf", "sp", "nf", "np"))
    return [
        t, t * (r == 2), t * (r == 3), t * (r == 4), t * (r == 2 and first), t * (r > 2 and first),
        t * sf, t * passes * other, t * nf * other, t * sp,
        1, r == 2, r == 3, r == 4, f == 2, f == 3, f == 4,
        first and f == 2, first and f == 3, first and f == 4,
        sf, passes * other, squeezed(e), nf, passes, sp * sd, ever, squeezed(since), sd,
        squeezed(total), (f > 1) * sf, (f > 1) * nf,
        (f > 1) * log(counts["n0"]), (f > 1) * log(counts["n1"]),
    ]  # fmt: skip


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_features_are_those_of_a_plain_walk(protocol):
    task = PROTOCOLS[protocol](LOG, same_day=True)
    rows = np.flatnonzero(task.reviews.elapsed > 0)
    found = features(history_of(task.reviews), rows, task.reviews.elapsed[rows])
    expected = [plain_features(task.reviews, row) for row in rows]
    np.testing.assert_allclose(found, np.array(expected, float), rtol=1e-9, atol=1e-9)


def test_days_end_between_what_was_the_same_day_and_what_was_not():
    reviews = SECONDS.reviews
    past, rows = history_of(reviews), np.flatnonzero(reviews.elapsed > 0)
    own = reviews.elapsed[rows]
    same_day = reviews.elapsed_days[rows] == 0
    assert same_day.any()
    np.testing.assert_array_equal(on_same_day(past, rows, own), same_day)
    assert on_same_day(past, rows, np.full(len(rows), 1e-9)).mean() > 0.99
    assert not on_same_day(past, rows, np.maximum(own, 1.0)).any()


def trained_by_pytorch(task, rows):
    """AdamW on mini-batches in random order, on the spreads that each coefficient has moved."""
    space = LogisticEquations.parameters
    mean = torch.tensor(space.defaults, dtype=torch.float64)
    spread = torch.tensor(space.spread, dtype=torch.float64)
    reviews = task.reviews
    inputs = torch.tensor(features(history_of(reviews), rows, reviews.elapsed[rows]))
    recalled = torch.tensor(reviews.recalled[rows].astype(float))
    weight = 0.1 + 0.9 * torch.linspace(0, 1, len(rows), dtype=torch.float64) ** 4
    moved = torch.zeros(34, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.AdamW([moved], lr=0.2, betas=(0.0, 0.85), eps=1e-8, weight_decay=0.3)
    steps = 10 * -(-len(rows) // Logistic.recipe.batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=steps)
    torch.manual_seed(42)
    for _ in range(10):
        for batch in torch.randperm(len(rows)).split(Logistic.recipe.batch):
            optimiser.zero_grad()
            torch.nn.functional.binary_cross_entropy_with_logits(
                inputs[batch] @ (mean + spread * moved),
                recalled[batch],
                weight=weight[batch],
                reduction="sum",
            ).backward()
            optimiser.step()
            schedule.step()
    return (mean + spread * moved).detach().numpy()


def test_the_public_trainer_is_pytorchs(monkeypatch):
    # Several batches for this little log, the last of them smaller.
    recipe = dataclasses.replace(Logistic.recipe, batch=100)
    monkeypatch.setattr(Logistic, "recipe", recipe)
    assert len(TRAIN) % 100
    model = Logistic(fit="reference").fit(SECONDS.reviews, TRAIN, None)
    np.testing.assert_allclose(model.parameters, trained_by_pytorch(SECONDS, TRAIN), atol=1e-9)


def test_recent_reviews_count_more_unless_said_otherwise():
    np.testing.assert_allclose(Logistic().weights(3), [0.1, 0.1 + 0.9 / 16, 1.0])
    np.testing.assert_allclose(Logistic(fit="reference").weights(3), Logistic().weights(3))
    np.testing.assert_array_equal(Logistic(recency="none").weights(3), 1.0)
