"""Every output says the same of the users and reviews that its scores rest on."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from invented import Ends, Logs, invented_log, log_of

from srs_eval import results
from srs_eval.algorithms.baselines import Average, Constant
from srs_eval.comparison.compare import compare
from srs_eval.comparison.report.files import as_json, csv_text, latex, markdown, terminal_text
from srs_eval.comparison.report.html import page
from srs_eval.comparison.report.sweep import compare_groups
from srs_eval.errors import ConfigError, FitError, FitSkipped
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import Brier, LogLoss
from srs_eval.nouns import Fold, Task
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised, SrsBenchmarkSecs
from srs_eval.protocol.prequential import Prequential
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.validation import Validation
from srs_eval.results.coverage import Coverage, CoverageCount
from srs_eval.results.run import load_run, run_of
from srs_eval.run.description import RunDescription
from srs_eval.run.evaluate import evaluate
from srs_eval.run.experiment import Experiment
from srs_eval.run.report import result_text

PANEL = Panel([LogLoss(), Brier(), Auc()])
GOOD, RECALLED = (1, 2, 3, 4, 5), (6, 7)  # AUC is not defined without a lapse


def short_log(user, size):
    """A log of one card, which the rule of rare first intervals leaves nothing of."""
    day = np.arange(size)
    log = log_of([1] * size, day, elapsed_seconds=np.where(day == 0, -1, 86_400))
    return replace(log, user=user)


class WithFailures(Logs):
    """Logs, and one that cannot be read."""

    def users(self):
        return [*self.logs, "broken"]

    def read(self, user):
        if user == "broken":
            raise ValueError("row 17 of 5,000 is torn")
        return super().read(user)


LOGS = {
    **{user: invented_log(seed=user, user=user) for user in GOOD},
    **{user: invented_log(seed=user, user=user, recall=1.0) for user in RECALLED},
    **{user: short_log(user, 8 + place) for place, user in enumerate("abc")},
}
READ, SHORT = sum(map(len, LOGS.values())), 8 + 9 + 10


def evaluated(algorithm=None, label="avg", **changed):
    experiment = Experiment(algorithm or Average(), WithFailures(LOGS), SrsBenchmark(), PANEL)
    about = RunDescription(label, "logs", label, tags={"config_hash": label})
    return evaluate(replace(experiment, **changed), about=about)


@pytest.fixture(scope="module")
def both():
    """Two runs of the same logs."""
    return evaluated(), evaluated(Constant(), "constant")


def numbers(text):
    """Users and reviews scored and read, then those of users skipped and failed."""
    plain = re.sub(r"<[^>]*>|\\", "", text)
    rests = re.search(
        r"Rests on ([\d,]+) of ([\d,]+) users and ([\d,]+) of ([\d,]+) reviews", plain
    )
    assert rests, plain
    skipped = re.search(r"Skipped: ([\d,]+) users with ([\d,]+) reviews", plain)
    failed = re.search(r"Failed: ([\d,]+) user", plain)
    found = [*rests.groups(), *(skipped or ()).groups(), failed[1]]
    return [int(number.replace(",", "")) for number in found]


def of_users(found):
    """Return the numbers of users of a coverage, whose reviews add up."""
    coverage = found.get("coverage", found)
    users, reviews = coverage["users"], dict(coverage["reviews"])
    inside = [*reviews.pop("dropped").values(), *reviews.pop("unscored").values()]
    assert sum(users.values()) == 2 * users["read"]
    assert sum(reviews.values()) + sum(inside) == 2 * reviews["read"]
    return users


def test_a_run_says_the_same_on_screen_and_in_its_files(both, tmp_path):
    result = results.save(both[0], tmp_path)
    scored = int(both[0].by_user.reviews.sum())
    for text in (result_text(result, PANEL), result_text(result, PANEL, brief=True)):
        assert numbers(text) == [7, 11, scored, READ, 3, SHORT, 1]
        assert "protocol=srs_benchmark_secs could score 15 reviews of all of them" in text
        assert "Failed: 1 user whose reviews are not counted" in text
    coverage = json.loads((tmp_path / "summary.json").read_text())["coverage"]
    assert of_users(coverage) == {"read": 11, "scored": 7, "skipped": 3, "failed": 1}
    assert (coverage["reviews"]["scored"], coverage["reviews"]["skipped"]) == (scored, SHORT)
    found = [load_run(tmp_path).facts.coverage, results.load(tmp_path).facts.coverage]
    assert found == [result.facts.coverage, both[0].facts.coverage]
    group = {**coverage["left_out"][0], "rules": ["x"]}
    for wrong in (
        *({}, 3, {"users": 3}, {**coverage, "left_out": [{}]}, {**coverage, "left_out": [group]}),
        {**coverage, "users": {**coverage["users"], "scored": -1}},
    ):
        with pytest.raises((LookupError, TypeError, ValueError)):
            Coverage.from_json(wrong)


@pytest.mark.parametrize(("metric", "users"), [("log_loss", 7), ("auc", 5)])
def test_a_board_says_the_same_in_every_output(both, metric, users):
    verdict = compare([run_of(result) for result in both], metric=metric)
    scored = int(both[0].by_user.reviews[:users].sum())
    texts = [form(verdict) for form in (terminal_text, markdown, latex, page, csv_text)]
    for text in (*texts, terminal_text(verdict, of_sweep=True)):
        assert numbers(text) == [users, 11, scored, READ, 3, SHORT, 1]
        assert "Caution: " in text
    found = as_json(verdict)
    assert (found["users"], found["reviews"]) == (users, scored)
    undefined = {"undefined": 2} if metric == "auc" else {}
    assert of_users(found) == {"read": 11, "scored": users, "skipped": 3, "failed": 1, **undefined}
    caption = latex(verdict).split(r"\caption")[1]
    assert f"{users} of 11 users and {scored:,} of {READ:,} reviews" in caption


def test_users_and_reviews_that_one_run_lacks_are_counted_as_not_scored_by_every_run(both):
    run = run_of(both[0])
    for error in (FitError, FitSkipped):
        runs = [run, run_of(evaluated(Ends(error("it diverged"), users=(2, 4)), "other"))]
        with pytest.raises(ConfigError, match=r"other .* users 2, 4"):
            compare(runs)
        for verdict in (compare(runs, intersect=True), *compare_groups(runs)):
            lost = {"read": 11, "scored": 5, "skipped": 3, "failed": 1, "not_in_every_run": 2}
            assert of_users(as_json(verdict)) == lost
            (said,) = [each.reason for each in verdict.coverage.left_out if each.users == 2]
            assert said.startswith("other scored ")
    runs = [run, run_of(evaluated(label="other", protocol=Prequential(30, 50)))]
    with pytest.raises(ConfigError, match="scored other reviews"):
        compare(runs)
    verdict = compare(runs, intersect=True)
    found = as_json(verdict)
    of_users(found)
    assert found["coverage"]["reviews"]["not_in_every_run"] > 0
    assert found["coverage"]["reviews"]["scored"] == found["reviews"]
    assert numbers(terminal_text(verdict))[2] == found["reviews"]


class Plain:
    """A protocol that says nothing of its rules."""

    name, version, folds = "plain", "1", 1

    def __call__(self, reviews, *, same_day):
        rows = np.arange(len(reviews))
        fold = Fold(0, train=rows[:10], test=rows[10:30])
        return Task(reviews, [fold], nth_review=rows, lapses=rows, log_row=rows)


PROTOCOLS = (
    *(SrsBenchmark(), SrsBenchmarkSecs(), SrsBenchmarkEqualised(), Plain()),
    *(Prequential(first=5, every=50), Validation()),
)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_every_protocol_accounts_for_every_review(protocol):
    logs = {}
    for user in GOOD:
        seconds = np.where(LOGS[user].elapsed_days < 0, -1.0, LOGS[user].elapsed_days * 86_400 + 60)
        logs[user] = replace(LOGS[user], elapsed_seconds=seconds)
    coverage = evaluated(protocol=protocol, source=Logs(logs)).facts.coverage
    assert of_users(coverage.as_json())["scored"] == coverage.scored_users == len(GOOD)
    assert coverage.reviews == sum(map(len, logs.values()))
    assert coverage.unscored["only learned from"] > 0
    assert ("kept for the final score" in coverage.unscored) == isinstance(protocol, Validation)
    if isinstance(protocol, Plain):
        others = coverage.reviews - 30 * len(GOOD)
        assert coverage.unscored == {"only learned from": 50, "not used by the protocol": others}


def row(user, status="", reason="", **counts):
    known = {"reviews": 0, "reviews_read": 0, "dropped": {}, "unscored": {}, "could_score": {}}
    return {"user": user, "status": status, "reason": reason, **known, **counts}


def counted(*rows):
    count = CoverageCount()
    for each in rows:
        count.add(each)
    return count.total


def test_a_tenth_of_users_or_reviews_left_out_is_loud():
    cases = ((0, 0, False), (1, 10, False), (2, 10, True), (1, 200, True))
    for whole, lost, reviews, loud in (*((10, *case) for case in cases), (9, 1, 10, False)):
        scored = [row(number, reviews_read=100, reviews=50) for number in range(whole)]
        left = [row(f"x{n}", "skipped", "too few", reviews_read=reviews) for n in range(lost)]
        caution = counted(*scored, *left).caution
        assert (f"({lost:,} of {whole + lost}" in caution) == bool(caution) == loud


REASONS = (
    *(["too few"], ["too few"] * 2, ["only 3 of 90; x", "only 0 of 1,130; y"], ["user u1: no"]),
    *(["user u1, fold 2: no", "user u2: no", "of user u3"], ["log of user u1", "log of user u2"]),
    *(["u:\n  - a is 3\n  - b\n  Do this."], ["u:\n  - is a 3?\n  - b"]),
    *(
        ["at 2024-03-01T10:00", "at 2025-04-02T11:01"],
        [f"reason {'x' * n}" for n in range(1, 9)] * 2,
    ),
)


def test_reasons_that_differ_in_numbers_are_one(golden_text):
    text = ""
    for reasons in REASONS:
        rows = [row(f"u{n}", "skipped", why, reviews_read=7) for n, why in enumerate(reasons, 1)]
        found = counted(*rows).left_out
        assert sum(each.reviews for each in found) == 7 * len(reasons)
        told = [f"  {each.users} {each.status}: {each.reason}" for each in found]
        text += "\n".join([*reasons, *told, "", ""])
    golden_text("reasons", text)
