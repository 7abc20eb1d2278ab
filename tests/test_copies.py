"""What passes between us and a plug-in is copied, so that neither can change it afterwards."""

import numpy as np
import pytest
from offenders import Learns, SharesOneArrayAmongItsModels, WritesIntoWhatItGetsAndReturns

from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.score import score
from srs_eval.protocol.prequential import Prequential
from srs_eval.protocol.refit import SrsBenchmarkRefit
from srs_eval.protocol.srs_benchmark import SrsBenchmark

PROTOCOLS = {
    "benchmark": SrsBenchmark(),
    "refit": SrsBenchmarkRefit(refits=20),
    "cold": SrsBenchmarkRefit(refits=20, warm_start=False),
    "prequential": Prequential(first=20, every=20),
}
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
        evaluated(each, logs_of(1, 2), PROTOCOLS[protocol], watched=watched)
        for each in (kind, Learns)
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
