"""Features of a session and the filter that weighs them, against plain loops over the log."""

from dataclasses import replace

import numpy as np
import pytest
from invented import Ends, Told
from scipy.special import expit, logit, softmax
from trial import FOLD, REVIEWS, fitted

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.combined import Query
from srs_eval.algorithms.half_life import Hlr
from srs_eval.algorithms.sessions.features import (
    CARD,
    FORMULAS,
    GROUP_OF,
    SESSION,
    SETS,
    SIBLINGS,
    answers_of,
)
from srs_eval.algorithms.sessions.session_filter import Forecast, SessionFilter
from srs_eval.algorithms.sessions.walk import Filter, learn_weights
from srs_eval.errors import FitError


def test_features_are_what_they_were(golden_text):
    """As a loop over the answers before each of them computed them, when they were written."""
    rng = np.random.default_rng(4)
    # Names say nothing: cards are known by when they came, decks by which cards are alike.
    names = rng.permutation(10**6)
    deck, card = names[REVIEWS.card % 3], names[3 + REVIEWS.card]
    # Ten cards have no note, the others one in three.
    note = np.where(REVIEWS.card < 30, names[50 + REVIEWS.card % 10], -1)
    reviews = replace(REVIEWS, deck=deck, card=card, note=note)
    z = np.where(reviews.elapsed > 0, rng.normal(1.5, 1.0, len(reviews)), 0.0)
    answers, lines = answers_of(reviews, z), []
    for name in dict.fromkeys((*SETS["full"], *SETS["small"], *SIBLINGS)):
        x = FORMULAS[name](answers)[answers.later] + 1e-9
        numbers = " ".join(f"{value:.4f}" for value in (x.mean(), x.std(), *x[::35]))
        lines.append(f"{name}: {numbers}\n")
    golden_text("session_features", "".join(lines))


def test_weights_are_those_of_the_filter():
    rng = np.random.default_rng(2)
    x, z, y = rng.normal(size=(200, 3)), rng.normal(size=200), rng.random(200) < 0.7
    width, drift = np.array([0.02, 0.3, 0.01]), 0.01
    path, covariance_at_end = learn_weights(x, z, y.astype(float), width, drift)
    w, covariance = np.zeros(3), np.diag(width)
    for k in range(200):
        np.testing.assert_allclose(path[k], w, atol=1e-10)
        p = expit(z[k] + w @ x[k])
        # One Newton step of the posterior, whose precision grows by the answer's information.
        precision = np.linalg.inv(covariance) + max(p * (1 - p), 0.02) * np.outer(x[k], x[k])
        after = np.linalg.inv(precision)
        w = w + after @ x[k] * (y[k] - p)
        covariance = after + drift * np.diag(width)
    np.testing.assert_allclose(covariance_at_end, covariance, atol=1e-10)


def test_training_rows_are_predicted_by_fits_to_earlier_ones():
    stages = Filter(Average(0.5), (), np.zeros(0), 0.0).in_stages(REVIEWS, FOLD.train, None)
    rows = np.flatnonzero(REVIEWS.elapsed > 0)
    p = expit(stages.log_odds(Query(REVIEWS, rows)))
    sizes = [len(FOLD.train) // 2**k for k in range(5, -1, -1)]
    sizes = [size for size in sizes if size >= 20]
    lasts = FOLD.train[np.array(sizes) - 1]
    np.testing.assert_array_equal(stages.begins, lasts + 1)
    assert len(sizes) > 2
    for size, begin, end in zip(sizes, lasts, [*lasts[1:], len(REVIEWS)], strict=True):
        # What comes before the first fit is predicted by it, and not learned from.
        own = (rows > begin if size > sizes[0] else rows >= 0) & (rows <= end)
        expected = (REVIEWS.recalled[FOLD.train[:size]].sum() + 0.5) / (size + 1)
        np.testing.assert_allclose(p[own], expected)


def test_what_is_mixed_has_the_shares_of_its_evidence_half_of_it_dropped_at_each_fit():
    model = fitted(SessionFilter(Hlr(), trust=0.3))
    walked = model.filter.walk(REVIEWS, len(REVIEWS))
    live = walked.path[np.maximum(np.arange(len(walked.rows)) - walked.first, 0)]
    z = walked.z + (walked.features * live).sum(axis=1)
    alone = fitted(SessionFilter(Hlr(), trust=1)).predict(REVIEWS, walked.rows)
    np.testing.assert_allclose(alone, expit(z), rtol=1e-9)
    p = expit([walked.z, z, 2 + 0.85 * (z - 2)])
    start = evidence = np.log([0.7, 0.15, 0.15])
    begins = set(np.searchsorted(walked.rows, model.filter.begins[1:]).tolist())
    expected = []
    for k, recalled in enumerate(REVIEWS.recalled[walked.rows]):
        if k in begins:
            evidence = start + (evidence - start) / 2
        expected.append(softmax(evidence) @ p[:, k])
        if k >= walked.first:
            evidence = evidence + np.log(p[:, k] if recalled else 1 - p[:, k])
            evidence = evidence - (evidence - start)[0]
    assert len(begins) > 2
    np.testing.assert_allclose(model.predict(REVIEWS, walked.rows), expected, rtol=1e-9)
    learned = model.learned
    assert len(model.parameters) == len(learned.standard_errors) == len(model.filter.features)
    assert min(learned.standard_errors) > 0
    groups = {GROUP_OF[name] for name in model.filter.features}
    assert {each.name for each in learned.contributions} == groups


def test_logs_without_decks_and_answer_times_are_predicted_too():
    bare = replace(REVIEWS, deck=None, duration_ms=None, elapsed_seconds=None)
    p = fitted(SessionFilter(Hlr()), bare).predict(bare, FOLD.test)
    assert ((p > 0) & (p < 1)).all()


def test_a_forecast_is_the_base_moved_by_what_was_known_of_the_card():
    model = fitted(Forecast(Hlr(), width=0.5))
    walked = model.filter.walk(REVIEWS, len(REVIEWS))
    names = list(model.filter.features)
    assert names[2:] == [*CARD, *SESSION]
    expected = []
    for row in FOLD.test:
        k = int(np.flatnonzero(walked.rows == row)[0])
        previous = int(np.flatnonzero(REVIEWS.card[:row] == REVIEWS.card[row])[-1])
        begin = max(previous, int(FOLD.train[-1])) + 1
        w = walked.path[int((walked.rows < begin).sum()) - walked.first]
        x = np.where([name in SESSION for name in names], 0.0, walked.features[k])
        expected.append(expit(walked.z[k] + x @ w))
    p = model.predict(REVIEWS, FOLD.test)
    np.testing.assert_allclose(p, expected, rtol=1e-10)
    assert abs(logit(p) - walked.answers.z[FOLD.test]).max() > 0.05


@pytest.mark.parametrize("wrong", [np.nan, 1.4, -0.1])
@pytest.mark.parametrize("kind", [SessionFilter, Forecast])
def test_what_is_no_probability_of_the_base_fails_the_fit(kind, wrong):
    with pytest.raises(FitError):
        fitted(kind(base=Ends(Told(lambda rows: np.where(rows % 2, 0.9, wrong)))))
