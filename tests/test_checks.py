"""The checks are checked: every planted cheat is caught, also before a run begins."""

import numpy as np
import pytest
from invented import Logs
from offenders import (
    CAUGHT,
    CHEATS,
    HONEST,
    Honest,
    Model,
    ReadsItsOwnRating,
    SkipsEveryUser,
    forgetting,
    predicts,
    varied,
)
from saved import setup_of

import srs_eval as se
from srs_eval.data.cards import since_previous
from srs_eval.evaluation.checks import (
    CheckFailed,
    check_algorithm,
    check_blind_to_the_future,
    check_goes_to_a_worker,
)
from srs_eval.evaluation.checks.lookahead import check_quickly
from srs_eval.evaluation.checks.toy_log import trial_task
from srs_eval.metrics.panel import default_panel
from srs_eval.runs.evaluation import refuse_lookahead


@pytest.mark.parametrize("check", CAUGHT, ids=lambda check: check.__name__)
def test_a_planted_cheat_is_caught_and_told_what_it_did(check):
    for cheat in CAUGHT[check]:
        with pytest.raises(CheckFailed, match=f"^{cheat.__name__}: "):
            check(cheat())
    if check is not check_goes_to_a_worker:
        with pytest.raises(CheckFailed, match=CAUGHT[check][0].__name__):
            check_algorithm(CAUGHT[check][0]())


def looks_at_logs(reviews, rows):
    """Honest: every log that it sees could be one."""
    days = since_previous(reviews.day, reviews.card)
    np.testing.assert_array_equal(reviews.elapsed_days, days)
    np.testing.assert_array_equal(reviews.elapsed, np.maximum(days, 0))
    assert min(np.diff(reviews.day).min(), np.diff(reviews.row).min() - 1) >= 0
    return forgetting(reviews.elapsed[rows])


LooksAtLogs = varied("LooksAtLogs", predicted=staticmethod(looks_at_logs))


@pytest.mark.parametrize("honest", [*HONEST, LooksAtLogs])
def test_an_honest_algorithm_passes(honest):
    check_algorithm(honest())
    check_quickly(honest())


def test_an_exception_is_reported_once_with_its_line_and_kept_as_the_cause():
    class Raises(Honest):
        def fit(self, reviews, rows, rng):
            return {}["stability"]

    with pytest.raises(CheckFailed) as caught:
        check_algorithm(Raises())
    assert isinstance(caught.value.__cause__, KeyError)
    (line,) = str(caught.value).splitlines()
    assert "KeyError: 'stability'" in line
    assert "test_checks.py:" in line


def test_a_task_that_is_skipped_is_said_to_be_with_the_reason():
    for task in (None, trial_task(same_day=False)):
        with pytest.raises(CheckFailed, match="there is no user like that"):
            check_blind_to_the_future(SkipsEveryUser(), task)


def test_a_task_of_ones_own_is_used_and_left_as_it_was():
    task = trial_task(same_day=True, cards=12)
    copy = task.reviews.elapsed.copy()
    check_algorithm(Honest(), task)
    with pytest.raises(CheckFailed):
        check_algorithm(CHEATS["ChangesItsLog"](), task)
    np.testing.assert_array_equal(task.reviews.elapsed, copy)


def test_an_algorithm_has_to_say_what_tables_need_to_know():
    class SaysNothing:
        def fit(self, reviews, rows, rng):
            return Model(lambda reviews, rows: np.full(len(rows), 0.9))

    with pytest.raises(CheckFailed, match=r"same_day .*, sees_truth .*, when "):
        check_algorithm(SaysNothing())


# They would lead every board.
PLAIN = """
    ReadsItsOwnRating ReadsItsOwnDuration ReadsALaterReviewOfAnotherCard
    ReadsTheAverageOfTheWholeLog ReadsGapsBetweenLaterDays LearnsFromNewCardsWithoutSayingSo
    LearnsUntilTheDayBeforeWithoutSayingSo TimesTheAnswersOfTheDay
"""


def test_what_reads_the_answers_plainly_is_caught_quickly():
    for name in PLAIN.split():
        with pytest.raises(CheckFailed, match=name):
            check_quickly(CHEATS[name]())


def test_noise_or_what_the_run_will_report_is_no_knowledge():
    rng = np.random.default_rng(0)
    for noise in (1e-6, 2e-5, 0.1):
        noisy = predicts("Noisy", lambda _, rows, s=noise: 0.5 + s * rng.standard_normal(len(rows)))
        check_quickly(noisy())
    for reported in (SkipsEveryUser, CHEATS["PredictsEveryReview"]):
        check_quickly(reported())


def test_only_what_is_not_of_srs_eval_is_tried_before_a_run():
    cheat = ReadsItsOwnRating()
    inside = {"_target_": "srs_eval.algorithms.sessions.session_filter.SessionFilter"}
    refuse_lookahead(setup_of(cheat, Logs({}), default_panel(), algo=inside))
    for outside in ("srs_evaluation.Mine", "offenders.KeepsALambda"):
        algo = {**inside, "base": {"_target_": outside}}
        with pytest.raises(CheckFailed):
            refuse_lookahead(setup_of(cheat, Logs({}), default_panel(), algo=algo))


def test_a_class_of_a_program_is_refused_unless_it_is_asked_for():
    data = {"users": 1, "size_scale": 0.02, "max_reviews": 900}
    given = {**data, "data": "synthetic", "panel": "quick", "progress": False}
    cheat = ReadsItsOwnRating()
    with pytest.raises(CheckFailed, match="check_lookahead"):
        se.evaluate(cheat, **given)
    assert se.evaluate(cheat, **given, check_lookahead=False).facts.metrics["auc"].mean_users == 1
