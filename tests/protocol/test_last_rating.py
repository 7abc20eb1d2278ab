"""The answer before each scored review, against a loop over the whole log."""

import pytest
from invented import invented_log
from timed import timed

from srs_eval.algorithms.baselines import Average
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.nouns import Algorithm
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised, SrsBenchmarkSecs
from srs_eval.protocol.prequential import Prequential
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.validation import Validation

LOG = timed(invented_log(seed=3, cards=600, same_day=0.4))


class SeesEveryReview(Average):
    same_day = True


@pytest.mark.parametrize("algorithm", [Average(), SeesEveryReview()])
@pytest.mark.parametrize(
    "protocol",
    [
        SrsBenchmark(),
        SrsBenchmarkSecs(),
        SrsBenchmarkEqualised(),
        Prequential(),
        Validation(SrsBenchmark()),
    ],
)
def test_the_answer_before_is_that_of_the_log_whatever_the_algorithm_sees(
    logs_of, protocol, algorithm: Algorithm
):
    before: dict[int, int] = {}
    expected = []
    for card, rating in zip(LOG.card.tolist(), LOG.rating.tolist(), strict=True):
        expected.append(before.get(card, 0))
        before[card] = rating
    done = EvaluateUser(logs_of(LOG), algorithm, protocol, seed=1, curves=0)(LOG.user)
    assert done.predictions is not None
    assert len(done.predictions) > 10
    found = done.predictions.last_rating
    assert found.tolist() == [expected[row] for row in done.predictions.row]
    assert set(found.tolist()) == {1, 2, 3, 4}
