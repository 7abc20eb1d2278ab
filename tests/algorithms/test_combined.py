"""What is made of other algorithms: the columns that each sees, declarations, groups, records."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from invented import Told
from scipy.special import expit, logit
from trial import FOLD, REVIEWS, fitted

from srs_eval.algorithms.algorithm import Learned, has_curve
from srs_eval.algorithms.baselines import Average, Constant, Oracle
from srs_eval.algorithms.combined import OTHERS, PerGroup
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.half_life import Hlr
from srs_eval.algorithms.online import MovingAverage
from srs_eval.algorithms.sessions.session_filter import Mixture
from srs_eval.data.reviews import GROUPS
from srs_eval.errors import FitSkipped
from srs_eval.protocol.srs_benchmark import SrsBenchmark


@pytest.mark.parametrize("same_day", [False, True])
def test_a_member_sees_what_the_protocol_would_show_it(make_log, same_day):
    log = make_log(cards=80)
    log = replace(log, truth=np.full(len(log), 0.5))
    wide, own = SrsBenchmark()(log, same_day=True), SrsBenchmark()(log, same_day=same_day)
    seen = []

    @dataclass(frozen=True)
    class Spy(Constant):
        def fit(self, reviews, rows, rng):
            seen.append((reviews, rows))
            return Constant().fit(reviews, rows, rng)

    Spy.same_day = same_day
    fitted(Mixture(Spy(), Oracle(), Hlr()), wide.reviews, wide.folds[0].train)
    ((reviews, rows),) = seen
    assert reviews.truth is None  # which is shown to those alone that say so
    np.testing.assert_array_equal(rows, own.folds[0].train)
    for column in ("card", "rating", "elapsed", "row"):
        np.testing.assert_array_equal(getattr(reviews, column), getattr(own.reviews, column))


@pytest.mark.parametrize(
    ("algorithm", "same_day", "when", "sees_truth"),
    [
        (Mixture(Hlr(), Average(), Hlr()), False, "previous_review", False),
        (Mixture(Hlr(), Fsrs6(), Hlr()), True, "previous_review", False),
        (Mixture(Hlr(), MovingAverage(), Hlr()), False, "at_review", False),
        (Mixture(Hlr(), Hlr(), Oracle()), False, "at_review", True),
    ],
)
def test_declarations_and_curves_follow_from_the_others(algorithm, same_day, when, sees_truth):
    declared = algorithm.same_day, algorithm.when, algorithm.sees_truth
    assert declared == (same_day, when, sees_truth)
    model = fitted(algorithm)
    assert has_curve(model) == all(map(has_curve, model.made_of()))
    if has_curve(model):
        now = REVIEWS.elapsed[FOLD.test][:, None]
        curve = model.predict_at(REVIEWS, FOLD.test, np.hstack([now, 3 * now]))
        np.testing.assert_allclose(curve[:, 0], model.predict(REVIEWS, FOLD.test), rtol=1e-12)
        assert (curve[:, 1] <= curve[:, 0]).all()


def test_log_odds_of_a_mixture_are_the_weighted_mean_of_the_others():
    algorithms = (Fsrs6(), Fsrs6(fit="default"), Fsrs6(fit="s0"))
    z = [logit(fitted(each).predict(REVIEWS, FOLD.test)) for each in algorithms]
    p = fitted(Mixture(*algorithms)).predict(REVIEWS, FOLD.test)
    np.testing.assert_allclose(p, expit(0.5 * z[0] + 0.25 * z[1] + 0.25 * z[2]), rtol=1e-9)
    with pytest.raises(FitSkipped):
        fitted(Mixture(), rows=np.array([], np.int64))


def test_fits_and_records_of_members_are_those_of_the_mixture():
    class Noted(Constant):
        def fit(self, reviews, rows, rng, previous=None):
            return Told(previous, (), Learned(note="so it is", fallback=True, converged=False))

        refit = fit

    mixture = Mixture(Noted(), Hlr(), Average())
    before = fitted(mixture, rows=FOLD.train[:100])
    after = mixture.refit(REVIEWS, FOLD.train, np.random.default_rng(0), before)
    assert after.models[0].p == before.models[0]
    learned = after.learned
    assert (learned.note, learned.fallback, learned.converged) == ("fsrs7: so it is", True, False)
    parts = {part.name: part.n_train for part in learned.parts}
    assert parts == dict.fromkeys(("fsrs7", "logistic", "sbd"), len(FOLD.train))


# Two large decks, a small one, and cards of which the deck is not known.
DECK = np.select([REVIEWS.card < 15, REVIEWS.card < 30, REVIEWS.card < 33], [7, 8, 9], -1)
DECKS = replace(REVIEWS, deck=DECK)


def test_each_group_is_predicted_by_the_fit_to_its_own_reviews():
    trained, tested = DECK[FOLD.train], DECK[FOLD.test]
    recalled = REVIEWS.recalled[FOLD.train]
    means = {f"deck {deck}": recalled[trained == deck].mean() for deck in (7, 8)}
    fewest = int(min((trained == deck).sum() for deck in (7, 8)))
    model = fitted(PerGroup(Average(), group="deck", fewest=fewest), DECKS)
    p = model.predict(DECKS, FOLD.test)
    for deck in (7, 8, 9, -1):
        expected = means.get(f"deck {deck}", recalled.mean())
        np.testing.assert_allclose(p[tested == deck], expected)
        assert (tested == deck).any()
    assert [*model.models] == [OTHERS, 7, 8]
    assert model.parameters == ()
    parts = {part.name: part.parameters[0] for part in model.learned.parts}
    assert parts == {"all": recalled.mean(), **means}
    assert model.learned.note == "2 of 3 decks have a fit of their own"
    assert not model.learned.fallback


def test_parts_of_parts_are_named_after_both_and_are_not_the_whole_model():
    model = fitted(Mixture(PerGroup(Hlr(), "deck", fewest=50), Hlr(), Hlr()), DECKS)
    parts = {part.name: (part.option, part.standalone) for part in model.learned.parts}
    inner = {f"fsrs7/{name}": ("fsrs7.base", False) for name in ("all", "deck 7", "deck 8")}
    assert parts == {name: (name, False) for name in ("fsrs7", "logistic", "sbd")} | inner


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(("column", "note"), [(None, "the log has"), (REVIEWS.row, "0 of ")])
def test_without_groups_of_enough_reviews_there_is_one_fit_and_it_says_so(group, column, note):
    log, whole = replace(REVIEWS, **{group: column}), fitted(Average())
    model = fitted(PerGroup(Average(), group, fewest=50), log)
    assert ([*model.models], model.learned.fallback) == ([OTHERS], True)
    assert model.learned.note.startswith(note)
    p = model.predict(log, FOLD.train)
    np.testing.assert_array_equal(p, whole.predict(log, FOLD.train))
