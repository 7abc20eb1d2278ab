"""Features of a session and the filter that weighs them, against plain loops over the log."""

from dataclasses import replace

import numpy as np
import pytest
from invented import Ends, Told
from trial import FOLD, REVIEWS, fitted

from srs_eval.algorithms.half_life import Hlr
from srs_eval.algorithms.sessions.features import FORMULAS, SETS, SIBLINGS, answers_of
from srs_eval.algorithms.sessions.session_filter import Forecast, SessionFilter
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


def test_logs_without_decks_and_answer_times_are_predicted_too():
    bare = replace(REVIEWS, deck=None, duration_ms=None, elapsed_seconds=None)
    p = fitted(SessionFilter(Hlr()), bare).predict(bare, FOLD.test)
    assert ((p > 0) & (p < 1)).all()


@pytest.mark.parametrize("wrong", [np.nan, 1.4, -0.1])
@pytest.mark.parametrize("kind", [SessionFilter, Forecast])
def test_what_is_no_probability_of_the_base_fails_the_fit(kind, wrong):
    with pytest.raises(FitError):
        fitted(kind(base=Ends(Told(lambda rows: np.where(rows % 2, 0.9, wrong)))))
