"""What passes between us and a plug-in is copied, so that neither can change it afterwards."""

import numpy as np
import pytest
from offenders import (
    SharesOneArrayAmongItsModels,
    ShufflesItsTrainingRows,
    TakesAnArrayForEachPrediction,
    WritesLaterIntoWhatItReturned,
)

from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss
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
TREATS_MEMORY_ITS_OWN_WAY = (
    SharesOneArrayAmongItsModels,
    WritesLaterIntoWhatItReturned,
    ShufflesItsTrainingRows,
)


def evaluated(algorithm, source, protocol, watch=None):
    work = EvaluateUser(source, algorithm, protocol, seed=0, curves=40, watch=watch)
    return [work(user) for user in source.users()]


@pytest.mark.parametrize("watched", [False, True], ids=["fit", "steps"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", TREATS_MEMORY_ITS_OWN_WAY)
def test_a_model_may_do_what_it_likes_with_its_own_memory(kind, protocol, watched, logs_of):
    source = logs_of(1, 2)
    steps = {kind: [], TakesAnArrayForEachPrediction: []}
    found, expected = (
        evaluated(
            each(),
            source,
            PROTOCOLS[protocol],
            (lambda step, p, of=each: steps[of].append(p)) if watched else None,
        )
        for each in steps
    )
    for one, other in zip(found, expected, strict=True):
        assert {fit.status for fit in one.fits} == {"ok"}
        assert [fit.parameters for fit in one.fits] == [fit.parameters for fit in other.fits]
        for name in ("row", "p", "recalled", "card", "lapses", "nth_review", "train_rate"):
            ours, theirs = getattr(one.predictions, name), getattr(other.predictions, name)
            np.testing.assert_array_equal(ours, theirs, err_msg=name)
        for name in ("row", "elapsed", "weight", "p"):
            ours = getattr(one.predictions.curves, name)
            np.testing.assert_array_equal(ours, getattr(other.predictions.curves, name))
    assert len(steps[kind]) == len(steps[TakesAnArrayForEachPrediction])
    for one, other in zip(*steps.values(), strict=True):
        np.testing.assert_array_equal(one.p, other.p)


class SortsPredictions:
    section = "test"
    name = "sorts_predictions"
    better = "neither"

    def __call__(self, predictions):
        predictions.p.sort()
        return float(predictions.p[0])


def test_a_metric_cannot_change_what_others_are_computed_from():
    p = np.array([0.9, 0.2, 0.6])
    with pytest.raises(ValueError, match="read-only"):
        score(p, [1, 0, 1], panel=Panel([SortsPredictions(), LogLoss()]))
    assert p.tolist() == [0.9, 0.2, 0.6]
    p.sort()  # the caller's array is as writable as it was
