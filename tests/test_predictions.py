"""Predictions joined, selected and named, and what passes between us and a plug-in, copied."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from offenders import Learns, SharesOneArrayAmongItsModels, WritesIntoWhatItGetsAndReturns
from pairs import predicted

from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.score import score
from srs_eval.nouns import Curves
from srs_eval.nouns.predictions import (
    concatenate,
    reviews_fingerprint,
    rows_fingerprint,
    select,
)
from srs_eval.protocol.prequential import Prequential
from srs_eval.protocol.refit import SrsBenchmarkRefit
from srs_eval.protocol.srs_benchmark import SrsBenchmark

PROTOCOLS = (
    *(SrsBenchmark(), SrsBenchmarkRefit(refits=20), Prequential(first=20, every=20)),
    SrsBenchmarkRefit(refits=20, warm_start=False),
)
COLUMNS = ("row", "p", "recalled", "card", "lapses", "nth_review", "train_rate")


def evaluated(kind, source, protocol, *, watched):
    """Return parameters, columns and predictions of steps, for each user."""
    shown = []
    watch = (lambda _, made: shown.append(made.p)) if watched else None
    work = EvaluateUser(source, kind(), protocol, seed=0, curves=40, watch=watch)
    for user in source.users():
        made = work(user)
        assert {fit.status for fit in made.fits} == {"ok"}
        yield from ([fit.parameters for fit in made.fits], *shown)
        yield from (getattr(made.predictions, name) for name in COLUMNS)
        curves = made.predictions.curves
        yield from (curves.row, curves.elapsed, curves.weight, curves.p)


@pytest.mark.parametrize("watched", [False, True], ids=["fit", "steps"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", [SharesOneArrayAmongItsModels, WritesIntoWhatItGetsAndReturns])
def test_a_model_may_do_what_it_likes_with_its_own_memory(kind, protocol, watched, logs_of):
    found, expected = (
        evaluated(each, logs_of(1, 2), protocol, watched=watched) for each in (kind, Learns)
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


class SortsPredictions:
    name, better, section = "sorts_predictions", "neither", "test"

    def __call__(self, predictions):
        predictions.p.sort()


def test_a_metric_cannot_change_what_others_are_computed_from():
    p = np.array([0.9, 0.2, 0.6])
    with pytest.raises(ValueError, match="read-only"):
        score(p, [1, 0, 1], panel=Panel([SortsPredictions()]))
    assert p.tolist() == [0.9, 0.2, 0.6]
    p.sort()  # the caller's array is as writable as it was


def of(user, rows, *, p=0.5, recalled=True, curves=0, facts=True):
    n, sampled = len(rows), np.arange(curves)
    times = np.tile([1.0, 2.0], (curves, 1))
    kept = Curves(sampled * 0, sampled, np.array(rows)[:curves], times, times / 3, times / 4)
    return predicted(
        np.full(n, p),
        np.full(n, recalled),
        users=(user,),
        row=np.array(rows, np.int64),
        elapsed_days=np.ones(n) if facts else None,
        curves=kept if curves else None,
    )


def test_parts_of_a_user_are_joined_by_name_and_selected():
    joined = concatenate([of("a", [1, 2]), of("b", [1], p=0.7), of("a", [3])])
    assert joined.users == ("a", "b")
    assert joined.user.tolist() == [0, 0, 1, 0]
    assert joined.row.tolist() == [1, 2, 1, 3]
    assert joined.p.tolist() == [0.5, 0.5, 0.7, 0.5]
    assert select(joined, np.array([3, 0])).row.tolist() == [3, 1]
    assert select(joined, joined.row > 1).row.tolist() == [2, 3]
    assert concatenate([]) is None


def test_curves_go_with_their_users_and_facts_that_a_part_lacks_are_lacking():
    joined = concatenate([of("a", [1, 2]), of("b", [5, 6], curves=2, facts=False)])
    assert joined.curves.user.tolist() == [1, 1]
    assert joined.elapsed_days is None


@given(st.permutations(range(1, 8)))
def test_the_fingerprint_of_scored_reviews_is_of_rows_and_outcomes_in_any_order(rows):
    expected = rows_fingerprint(of("a", [1, 2, 3, 4, 5, 6, 7]))
    first, *others = (of("a", [row], p=0.9) for row in rows)
    assert rows_fingerprint(concatenate([first, *others])) == expected
    for part in (of("a", [9]), of("a", [8, 9]), replace(first, recalled=~first.recalled)):
        assert rows_fingerprint(concatenate([part, *others])) != expected


@pytest.mark.parametrize("column", ["card", "day", "rating", "elapsed_days"])
def test_the_fingerprint_of_a_log_depends_on_every_column(make_log, column):
    log = make_log()
    changed = getattr(log, column).copy()
    changed[5] += 1
    other = replace(log, **{column: changed})
    assert reviews_fingerprint(other) != reviews_fingerprint(log)
    assert reviews_fingerprint(make_log()) == reviews_fingerprint(log)
    seconds = replace(log, elapsed_seconds=np.full(len(log), 5.0))
    assert reviews_fingerprint(seconds) != reviews_fingerprint(log)
