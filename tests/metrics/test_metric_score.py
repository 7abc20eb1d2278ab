from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from srs_eval.errors import ScoreError
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.proper import Brier
from srs_eval.metrics.score import score

P = [0.9, 0.8, 0.3, 0.6]
RECALLED = [1, 1, 0, 0]


def test_it_is_the_whole_default_panel():
    assert set(score(P, RECALLED)) == {"n", "n_dropped", *default_panel().names}


def test_facts_bring_rmse_bins():
    scores = score(P, RECALLED, elapsed_days=[1, 2, 3, 9], nth_review=[2, 3, 2, 2], lapses=[0] * 4)
    assert 0 < scores["rmse_bins"] < 1
    assert 0 < scores["rmse_bins_wiki"] < 1


def test_every_container_gives_the_same_numbers():
    torch = pytest.importorskip("torch")
    expected = score(np.array(P), np.array(RECALLED, bool))
    containers = [
        (tuple(P), RECALLED),
        (pd.Series(P, index=[9, 8, 7, 6]), pd.Series(RECALLED)),
        (torch.tensor(P, dtype=torch.float64), torch.tensor(RECALLED)),
        (np.array(P, object), np.array(RECALLED, float)),
    ]
    for p, recalled in containers:
        got = score(p, recalled)
        assert list(got.values()) == pytest.approx(list(expected.values()), nan_ok=True)


def test_columns_that_merely_convert_to_arrays_are_taken():
    class Column:
        def __init__(self, values):
            self.values = values

        def __array__(self, dtype=None, copy=None):
            return np.array(self.values, dtype)

    assert score(Column(P), Column(RECALLED))["brier"] == score(P, RECALLED)["brier"]


def test_thresholds_can_be_chosen():
    scores = score(P, RECALLED, thresholds=[0.5])
    assert scores["confusion_ppv_at_0_5"] == pytest.approx(2 / 3)
    assert "confusion_ppv_at_0_9" not in scores


def test_a_panel_of_ones_own_can_be_chosen():
    scores = score(P, RECALLED, card=[1, 1, 2, 2], panel=Panel([Brier()]))
    assert set(scores) == {"n", "n_dropped", "brier"}


def test_missing_values_in_any_column_can_be_left_out():
    days = [1.0, math.nan, 3.0, 4.0]
    facts = {"elapsed_days": days, "nth_review": [2, 2, None, 2], "lapses": [0, 0, 0, 0]}
    scores = score(P, RECALLED, **facts, nan_policy="omit")
    assert (scores["n"], scores["n_dropped"]) == (2, 2)
    assert scores["brier"] == pytest.approx((0.1**2 + 0.6**2) / 2)


def test_nothing_is_scored_as_nothing():
    scores = score([], [])
    assert scores.pop("n") == scores.pop("n_dropped") == 0
    assert all(math.isnan(value) for value in scores.values())


def test_everything_missing_is_scored_as_nothing():
    scores = score([math.nan, math.nan], [1, 0], nan_policy="omit")
    assert (scores["n"], scores["n_dropped"]) == (0, 2)
    assert math.isnan(scores["log_loss"])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((P, RECALLED), {"nan_policy": "ignore"}, "expected 'raise' or 'omit'"),
        ((P, RECALLED[:2]), {}, "recalled has shape \\(2,\\), but p has \\(4,\\)"),
        ((P, RECALLED[:2]), {"nan_policy": "omit"}, "equal lengths"),
        ((0.5, 1), {}, "expected one dimension"),
        ((P, ["a", "b", "c", "d"]), {}, "recalled cannot be read as numbers"),
        ((P, RECALLED), {"lapses": [0, 0, 0]}, "lapses has shape"),
        (([2.0, 0.5], [1, 0]), {"nan_policy": "omit"}, "outside \\[0, 1\\]"),
    ],
)
def test_what_cannot_be_scored_is_refused(arguments, options, message):
    with pytest.raises(ScoreError, match=message):
        score(*arguments, **options)


def test_tensors_that_carry_gradients_are_refused_with_the_reason():
    torch = pytest.importorskip("torch")
    with pytest.raises(ScoreError, match=r"p cannot be read as numbers.*grad"):
        score(torch.tensor(P, requires_grad=True), RECALLED)
