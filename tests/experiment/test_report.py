"""What the command says of fits that are missing, or not what they should be."""

import numpy as np
import pytest
from saved import result_from

from srs_eval.evaluation.evaluate import ReviewLog, UserEvaluation
from srs_eval.experiment import jobs
from srs_eval.experiment.jobs import JobOutcome
from srs_eval.experiment.report import result_text
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.nouns import Fit, Predictions
from srs_eval.results.fit_counts import failures_in_words, reason_of
from srs_eval.results.remarks import sentences, warnings
from srs_eval.results.run import run_of

PANEL = Panel([LogLoss()])


def said(*fits):
    users = dict.fromkeys(fit.user for fit in fits)
    evaluations = [
        UserEvaluation(user, tuple(fit for fit in fits if fit.user == user), None, ReviewLog())
        for user in users
    ]
    return result_text(result_from(evaluations, PANEL), PANEL).splitlines()


def test_every_status_is_counted():
    fits = [Fit(1, fold, status) for fold, status in enumerate(["ok", "fallback", "failed"])]
    assert said(*fits, Fit(2, -1, "skipped"))[0].endswith(
        "fits: 1 ok, 1 fallback, 1 skipped, 1 failed"
    )


def test_the_worst_is_said_first_and_each_reason_once():
    fallbacks = [Fit(1, fold, "fallback", "no second reviews") for fold in range(4)]
    failures = [Fit(2, fold, "failed", f"user 2, fold {fold}: it diverged") for fold in (1, 3)]
    note = Fit(3, 0, "ok", "did not converge")
    skipped = Fit(4, -1, "skipped", "user 4: only 3 of 9 reviews")
    lines = said(note, *fallbacks, skipped, *failures)
    assert not any(line.startswith("skipped: ") for line in lines)
    assert lines[-3:] == [
        "failed: user 2, fold 1: it diverged (and 1 more)",
        "fallback: user 1, fold 0: no second reviews (and 3 more)",
        "note: user 3, fold 0: did not converge",
    ]


def test_of_many_reasons_some_are_said():
    fits = [Fit(user, -1, "failed", f"user {user}: reason {user}") for user in range(9)]
    lines = said(*fits)
    assert sum(line.startswith("not evaluated: ") for line in lines) == 5
    assert lines[-1] == "… and 4 more, all in fits.parquet"


def test_a_log_that_could_not_be_read_is_no_failed_fit():
    made = [Fit(1, fold, "ok") for fold in range(5)]
    assert said(*made, Fit(2, -1, "failed", "no"))[0].endswith("fits: 5 ok")
    assert said(Fit(2, -1, "failed", "no"))[0].endswith("fits: none")


def test_remarks_of_the_job_before_are_counted_only():
    slow = Fit(1, 0, "failed", "it\n  diverged")
    short = Fit(2, -1, "skipped", "only 3 of 9 reviews")
    result = result_from([UserEvaluation(1, (slow,), None, ReviewLog())], PANEL)
    both = [UserEvaluation(1, (slow,), None, ReviewLog())]
    both.append(UserEvaluation(2, (short,), None, ReviewLog()))
    before = set()
    texts = [
        result_text(each, PANEL, brief=True, said=before)
        for each in (result, result, result_from(both, PANEL))
    ]
    assert [text.count("diverged") for text in texts] == [1, 0, 0]
    assert ["2 remarks as above" in text for text in texts] == [False, True, True]
    assert "only 3 of 9 reviews" in texts[2]


@pytest.mark.parametrize(
    ("fits", "words"),
    [
        ([Fit(1, 0, "ok"), Fit(1, 1, "failed", "no")], "1 of 2 fits failed: user 1, fold 1: no"),
        (
            [Fit(1, 0, "ok"), Fit(2, -1, "failed", "no")],
            "1 of 2 users was not evaluated: user 2: no",
        ),
        (
            [Fit(1, 0, "failed", "no"), Fit(2, -1, "failed", "x"), Fit(3, -1, "failed", "x")],
            "1 of 1 fit failed and 2 of 3 users were not evaluated, the first: user 1, fold 0: no",
        ),
    ],
)
def test_a_user_without_a_fit_is_not_counted_as_a_failed_fit(fits, words):
    assert failures_in_words(fits) == words


def test_jobs_that_failed_alike_are_named_together():
    outcomes = [JobOutcome("avg", "failed", reason, 1) for reason in ("no", "no", "other", "no")]
    lines = jobs._jobs_table([*outcomes, JobOutcome("hlr", "ok")]).splitlines()
    assert lines[-2:] == ["jobs 0, 1, 3: no", "job 2: other"]


def test_user_and_fold_are_named_once():
    assert reason_of(Fit(3, 2, "failed", "user 3, fold 2: no")) == "user 3, fold 2: no"
    assert reason_of(Fit(3, 2, "failed", "no")) == "user 3, fold 2: no"
    assert reason_of(Fit(3, 2, "failed", "user 3: no")) == "user 3, fold 2: no"
    assert reason_of(Fit(3, -1, "skipped", "user 3: no")) == "user 3: no"
    assert reason_of(Fit(3, -1, "skipped", "user 33: no")) == "user 3: user 33: no"
    assert reason_of(Fit(3, 0, "failed")) == "user 3, fold 0"


def test_a_user_that_is_a_file_is_not_named_again():
    reason = "logs/ann.colpkg: there are no reviews in it"
    assert reason_of(Fit("ann", -1, "failed", reason)) == reason
    several = "ann.colpkg:\n  - one\n  - two"
    assert reason_of(Fit("ann", -1, "failed", several)) == several
    assert reason_of(Fit("ben", -1, "failed", reason)) == f"user ben: {reason}"
    of_table = "log.csv, user ann: time: row 3 is empty"
    assert reason_of(Fit("ann", -1, "failed", of_table)) == of_table
    assert reason_of(Fit("an", -1, "failed", of_table)) == f"user an: {of_table}"
    assert reason_of(Fit("ann", 2, "failed", of_table)) == f"user ann, fold 2: {of_table}"


def test_users_who_cannot_be_read_have_no_reviews():
    assert said(Fit(1, -1, "failed", "no"))[0].startswith("Rests on 0 of 1 user and 0 of 0 reviews")


def predicted(reviews, forgotten, p):
    """Predictions of reviews of which the first ones are forgotten."""
    rows = np.arange(reviews)
    return Predictions(
        users=("ann",),
        user=rows * 0,
        fold=rows * 0,
        row=rows,
        card=rows,
        p=p,
        recalled=rows >= forgotten,
        day=rows,
        elapsed_days=np.ones(reviews),
        nth_review=rows * 0 + 2,
        lapses=rows * 0,
        train_rate=np.full(reviews, 0.8),
    )


@pytest.mark.parametrize(
    ("reviews", "forgotten", "enough"),
    [(100, 10, True), (100, 90, True), (99, 50, False), (500, 9, False), (500, 491, False)],
)
def test_scores_of_a_handful_of_reviews_come_with_a_warning(reviews, forgotten, enough):
    predictions = predicted(reviews, forgotten, np.full(reviews, 0.8))
    log = ReviewLog(reviews, notes=("a remark",))
    user = UserEvaluation("ann", (Fit("ann", 0, "ok"),), predictions, log)
    result = result_from([user], PANEL)
    assert result.facts.forgotten == forgotten
    assert result.facts.notes == ("user ann: a remark",)
    text = result_text(result, PANEL)
    assert ("Too few reviews" in text) != enough
    assert "note: user ann: a remark" in text


def test_a_run_says_what_could_mislead_in_its_scores():
    cheating = predicted(reviews=200, forgotten=20, p=np.where(np.arange(200) < 20, 0.5, 0.9))
    user = UserEvaluation("ann", (Fit("ann", 0, "ok"),), cheating, ReviewLog(200))
    panel = default_panel()
    result = result_from([user], panel)
    text = result_text(result, panel)
    run = run_of(result)
    assert len(sentences(run)) == 3
    assert len(warnings(run)) == 1
    assert all(f"\n{remark}.\n" in text for remark in (*sentences(run), *warnings(run)))
    assert "percentage points" not in result_text(result, panel, brief=True)
