"""What a run says of itself: its sentence, how many answers it takes, and who has no score."""

import math
import re
from types import SimpleNamespace

import pytest

from srs_eval.evaluation.evaluate import ReviewLog, UserEvaluation
from srs_eval.evaluation.fits import Fit
from srs_eval.evaluation.scoring import score_user
from srs_eval.metrics.means import MetricSummary
from srs_eval.metrics.panel import default_panel
from srs_eval.runs.report import line, run_text
from srs_eval.runs.summary import Census, Summary


def metrics_of(ratio, low=0.8, high=1.1):
    values = {"log_loss": (0.3, 0.2, 0.4), "normalized_entropy": (ratio, low, high)}
    return {name: MetricSummary(m, m, m, lo, hi, 1) for name, (m, lo, hi) in values.items()}


@pytest.mark.parametrize(
    ("ratio", "low", "high", "said"),
    [
        *((0.9375, 0.9, 0.99, "6.2 % below .*$"), (0.75, 0.7, 0.99, "25 % below")),
        *((1.25, 1.01, 1.4, "25 % above"), (1.0, 1.0, 1.0, "0.0 % below .*noise")),
        *((0.75, 0.7, 1.0, "25 % .*noise"), (1.25, 1.0, 1.4, "25 % .*noise")),
        *((0.75, math.nan, math.nan, "25 % .*noise"), (math.nan, 0, 0, r"loss 0.3000\.$")),
    ],
)
def test_the_sentence_says_how_much_better_than_a_constant_guess(ratio, low, high, said):
    metrics = metrics_of(ratio, low, high)
    facts = Summary("hlr", users=1, reviews=100, forgotten=10, metrics=metrics)
    first = run_text(SimpleNamespace(facts=facts), default_panel()).splitlines()[0]
    assert re.search(said, first)
    assert ("noise" in first) == ("noise" in said)


def test_it_takes_a_hundred_answers_ten_of_each_kind():
    enough = {100: range(10, 91), 1000: range(10, 991), 99: ()}
    for reviews, forgotten in enough.items():
        for number in range(reviews + 1):
            few = Summary("", reviews=reviews, forgotten=number).too_few
            assert (few == "") == (number in forgotten)
    few = SimpleNamespace(facts=Summary("hlr", users=1, reviews=99, metrics=metrics_of(0.9)))
    assert "log_loss" not in run_text(few, default_panel())


def test_reasons_for_no_score_are_told_briefly_and_in_full_in_the_summary():
    census = Census()
    for user in range(60):
        # 30 kinds of reasons, which differ in a letter
        reason = f"user {user}: {chr(97 + user // 2)} {'x ' * 200}"
        fit = Fit(user, -1, "failed" if user < 30 else "skipped", reason)
        lost = UserEvaluation(user, (fit,), None, ReviewLog(10))
        census.add(score_user(lost, default_panel()))
    facts = Summary("hlr", **census.facts())
    left_out = facts.coverage.left_out
    assert [(each.status, each.users) for each in left_out] == [
        *[("failed", 2)] * 15,
        ("skipped", 20),
        *[("skipped", 2)] * 5,
    ]
    assert sum(each.reviews for each in left_out) == 600
    assert max(len(each.reason) for each in left_out) <= 300
    run = SimpleNamespace(facts=facts, folder=SimpleNamespace(name="0_hlr"))
    for text, most in ((run_text(run, default_panel()), 3), (line(run, 1.0), 1)):
        assert len(re.findall("^(?:failed|skipped): ", text, re.MULTILINE)) == most
        assert text.count("(2 users)") == most
        assert max(map(len, text.splitlines()[2:])) == 99  # words of a letter
