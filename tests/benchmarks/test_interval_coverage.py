"""The table of coverage: what it counts, and a small version of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from interval_coverage import BY_REVIEWS, PUBLISHED, Quantity, markdown, missed, published, rows
from interval_coverage import simulated as simulated_quantities

from srs_eval.stats.paired import paired_mean


@pytest.fixture(scope="module")
def simulated():
    return simulated_quantities(users=3_000)


def test_misses_are_counted_on_the_side_of_the_interval():
    first = np.random.default_rng(0).normal(0, 1, 400)
    equal, none = np.ones(400), np.zeros(400)
    quantity = Quantity("normal", first, none, equal)
    above, below = missed(quantity, 20, 600)
    rng, truth = np.random.default_rng([0, 20]), first.mean()
    drawn = [rng.integers(0, 400, 20) for _ in range(600)]
    found = [paired_mean(first[users], none[users]).interval() for users in drawn]
    assert above == np.mean([lo > truth for lo, _ in found])
    assert below == np.mean([hi < truth for _, hi in found])
    assert above + below < 0.025


def test_intervals_hold_the_mean_as_often_as_they_say(simulated):
    headline = [quantity for quantity in simulated if quantity.is_headline]
    held = [1 - sum(missed(quantity, users, 250)) for quantity in headline for users in (10, 40)]
    assert 0.975 < np.mean(held) <= 1


def test_every_quantity_is_a_row_and_the_mean_is_of_the_headline(simulated):
    text = markdown(list(rows(simulated, (5,), 20)), (5,), 20)
    assert text.count("\n| Simulated") == len(simulated)
    assert "mean of the 3 simulated" in text


def test_published_results_are_read_from_a_table_of_models_and_users(tmp_path):
    models = {"FSRS-5", *(model for model, _ in PUBLISHED), *BY_REVIEWS}
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        [
            {"model": model, "user": user, "size": 10 * user}
            | {metric: rng.random() for metric in ("log_loss", "auc", "rmse_bins")}
            for model in sorted(models)
            for user in range(1, 6)
        ]
    )
    table.to_parquet(tmp_path / "results.parquet")
    found = published(tmp_path / "results.parquet")
    assert len(found) == len(PUBLISHED) + len(BY_REVIEWS)
    ours, theirs = (table[table.model == name].log_loss for name in ("FSRS-5", "GRU-P"))
    gap = next(q for q in found if q.name == "log_loss: FSRS-5 less GRU-P")
    np.testing.assert_allclose(gap.first - gap.second, ours.to_numpy() - theirs.to_numpy())
    assert found[-1].weights.tolist() == [10, 20, 30, 40, 50]
