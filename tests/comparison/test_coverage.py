"""Every output says the same of the users and reviews that a comparison rests on."""

import re
from dataclasses import replace

import numpy as np
import pytest
from invented import Ends, Logs, invented_log, log_of
from saved import run_of, setup_of

from srs_eval.algorithms.baselines import Average, Constant
from srs_eval.comparison.answer import terminal
from srs_eval.comparison.compare import compare
from srs_eval.comparison.entry import entry_of
from srs_eval.comparison.files import as_json, latex, markdown
from srs_eval.comparison.report import page
from srs_eval.comparison.sweep import compare_group
from srs_eval.errors import ConfigError, FitError, FitSkipped
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.scores import auc, brier, log_loss
from srs_eval.protocol.prequential import Prequential

PANEL = Panel([log_loss, brier, auc])
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


def evaluated(folder, algorithm, protocol=None):
    setup = setup_of(algorithm, WithFailures(LOGS), PANEL, protocol, fail_fast=False)
    return entry_of(run_of(setup, folder))


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Two runs of the same logs."""
    folder = tmp_path_factory.mktemp("both")
    return evaluated(folder / "avg", Average()), evaluated(folder / "constant", Constant())


def of_users(found):
    """Return the numbers of users of a coverage, whose reviews add up."""
    coverage = found["coverage"]
    users, reviews = coverage["users"], dict(coverage["reviews"])
    inside = [*reviews.pop("dropped").values(), *reviews.pop("unscored").values()]
    assert sum(users.values()) == 2 * users["read"]
    assert sum(reviews.values()) + sum(inside) == 2 * reviews["read"]
    return users


@pytest.mark.parametrize(("metric", "users"), [("log_loss", 7), ("auc", 5)])
def test_a_comparison_says_the_same_in_every_output(both, metric, users, page_without_images):
    standings = compare(both, metric=metric)
    scored = sum([*both[0].reviews.values()][:users])
    saved = as_json(standings)
    left_out = 1 - (scored + sum(saved["coverage"]["reviews"]["unscored"].values())) / READ
    for form in (terminal, markdown, latex, page):
        text = re.sub(r"\\|&nbsp;", " ", form(standings))
        assert f"{users} users, {scored:,} reviews" in " ".join(text.split())
        assert f"{100 * left_out:.0f}  % of the reviews left out".replace("  ", " ") in " ".join(
            text.split()
        )
    assert f"{users} of 11 users and {scored:,} of {READ:,} reviews are compared" in text
    assert (saved["users"], saved["reviews"]) == (users, scored)
    undefined = {"undefined": 2} if metric == "auc" else {}
    assert of_users(saved) == {"read": 11, "scored": users, "skipped": 3, "failed": 1, **undefined}


def test_what_one_run_lacks_is_counted_as_not_scored_by_every_run(both, tmp_path):
    for error in (FitError, FitSkipped):
        other = evaluated(tmp_path / error.__name__, Ends(error("it diverged"), users=(2, 4)))
        runs = [both[0], other]
        with pytest.raises(ConfigError, match=r"ends .* users 2, 4"):
            compare(runs)
        for verdict in (compare(runs, intersect=True), compare_group(runs)):
            lost = {"read": 11, "scored": 5, "skipped": 3, "failed": 1, "not_in_every_run": 2}
            assert of_users(as_json(verdict)) == lost
            reasons = {each.status: each.reason for each in verdict.coverage.left_out}
            assert reasons["not_in_every_run"].startswith("ends scored ")
    runs = [both[0], evaluated(tmp_path / "other", Average(), Prequential(30, 50))]
    with pytest.raises(ConfigError, match="scored other reviews"):
        compare(runs)
    found = as_json(compare(runs, intersect=True))
    of_users(found)
    assert found["coverage"]["reviews"]["not_in_every_run"] > 0
    assert found["coverage"]["reviews"]["scored"] == found["reviews"]
