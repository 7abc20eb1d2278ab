"""Finished runs side by side: ranks, and differences between runs on the same reviews."""

from dataclasses import replace

import numpy as np
import pytest

from srs_eval.algorithms.baselines import Average, Constant
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.moving_average import MovingAverage
from srs_eval.comparison.leaderboard import leaderboards
from srs_eval.comparison.pairing import pair
from srs_eval.comparison.report.words import headline
from srs_eval.comparison.verdict import judge
from srs_eval.errors import FitError
from srs_eval.experiment.evaluate import evaluate
from srs_eval.experiment.experiment import Experiment
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import Brier, LogLoss
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results import files, save, tables
from srs_eval.results.run import load_run
from srs_eval.text.console import interval

ALGORITHMS = {
    "avg": Average(),
    "half": Constant(p=0.5),
    "fsrs6": Fsrs6(),
    "moving_avg": MovingAverage(),
}
PANEL = Panel([LogLoss(), Brier()])


class FailsForUser2:
    same_day = False
    online = False
    sees_truth = False

    def fit(self, reviews, rows, rng):
        if reviews.user == 2:
            raise FitError("no")
        return Average().fit(reviews, rows, rng)


@pytest.fixture
def finished(tmp_path, logs_of):
    """Run an algorithm and leave what a run leaves in its folder."""

    def run(algorithm, *users, panel=PANEL, data="synthetic"):
        source = logs_of(*users)
        experiment = Experiment(algorithm, source, SrsBenchmark(), panel, seed=0, curves_per_user=0)
        result = evaluate(experiment)
        result = result.described("", result.facts.label, data, {})
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        return folder, save(result, folder)

    return run


def ranking(text):
    """Labels in the order they are printed."""
    lines = text.splitlines()
    (rule,) = [number for number, line in enumerate(lines) if line.startswith("---")]
    rows = [line for line in lines[rule + 1 :] if "  " in line and line[0] != "*"]
    return [line.split("  ")[0] for line in rows]


def test_the_best_run_is_first(finished):
    runs = {name: finished(algorithm, 1, 2, 3) for name, algorithm in ALGORITHMS.items()}
    (text,) = leaderboards([folder for folder, _ in runs.values()])
    losses = {
        type(ALGORITHMS[name]).__name__: evaluation.facts.metrics["log_loss"].mean_users
        for name, (_, evaluation) in runs.items()
    }
    shown = [label.removesuffix(" *") for label in ranking(text)]
    assert shown == sorted(losses, key=losses.get)
    for loss in losses.values():
        assert f"{loss:.4f}" in text
    assert f"3 users; {next(iter(runs.values()))[1].facts.reviews:,} scored reviews" in text
    assert text.count("  leads  ") == 1


def test_what_learns_while_it_is_tested_is_marked(finished):
    folders = [finished(algorithm, 1)[0] for algorithm in ALGORITHMS.values()]
    (text,) = leaderboards(folders)
    assert "MovingAverage *" in ranking(text)
    assert sum(label.endswith("*") for label in ranking(text)) == 1
    assert text.endswith("* goes on learning while it is tested; never called the best")
    (frozen,) = leaderboards(folders[:3])
    assert "*" not in frozen


def test_differences_are_those_of_the_comparison(finished):
    runs = [finished(a, 1, 2, 3, 4, 5, 6)[0] for a in (Fsrs6(), Average(), Constant(p=0.5))]
    (text,) = leaderboards(runs)
    verdict = judge(pair([load_run(folder) for folder in runs]))
    assert headline(verdict) in text
    for model in verdict.order[1:]:
        standing = verdict.board.to_best[model]
        shown = f"{standing.difference.mean:+.4f}"
        assert f"{shown}  {interval(standing.average.lo, standing.average.hi)}" in text


@pytest.mark.parametrize("users", [(1,), (1, 2, 3)])
def test_a_run_and_itself_do_not_differ(finished, users):
    one, other = (finished(Average(), *users)[0] for _ in range(2))
    (text,) = leaderboards([one, other])
    assert "Average (1) makes the same predictions as Average (0); both count as one" in text
    assert "  identical  " in text


def test_runs_on_different_reviews_do_not_share_a_table(finished, make_log):
    one, _ = finished(Average(), make_log(seed=1))
    other, _ = finished(Average(), make_log(seed=2))
    same, _ = finished(Constant(), make_log(seed=1))
    texts = leaderboards([one, other, same])
    assert [len(ranking(text)) for text in texts] == [2, 1]


def test_runs_are_compared_on_the_users_that_all_of_them_have(finished):
    three, mine = finished(Average(), 1, 2, 3)
    two, _ = finished(Constant(), 1, 2)
    (text,) = leaderboards([three, two])
    assert "2 users of 3, those that every run could score" in text
    assert f"{mine.by_user.values[:2, 0].mean():.4f}" in text


def test_runs_that_share_users_in_pairs_only_are_all_shown(finished):
    runs = [finished(Average(), *users)[0] for users in ((1, 2), (2, 3), (1, 3))]
    texts = leaderboards(runs)
    assert sum(len(ranking(text)) for text in texts) == 3
    assert not any("nan" in text for text in texts)


def test_runs_on_different_data_do_not_share_a_table(finished):
    one, _ = finished(Average(), 1)
    other, _ = finished(Average(), 1, data="anki")
    assert len(leaderboards([one, other])) == 2


def test_a_run_that_lost_a_user_is_compared_on_the_others_and_says_so(finished):
    whole, mine = finished(Average(), 1, 2, 3)
    without, _ = finished(FailsForUser2(), 1, 2, 3)
    (text,) = leaderboards([whole, without])
    assert set(ranking(text)) == {"Average", "FailsForUser2 §"}
    assert "2 users of 3, those that every run could score" in text
    table = text.partition("\n---")[2].partition("\n\n")[0]
    rows = {line.split()[0]: line.split() for line in table.splitlines()[1:3]}
    assert "FailsForUser2: 5 fits failed" in text
    without_user_2 = mine.by_user.values[[0, 2], 0].mean()
    assert rows["Average"][1] == rows["FailsForUser2"][2] == f"{without_user_2:.4f}"


def test_a_run_that_scored_few_users_is_named_but_not_ranked(finished):
    most, _ = finished(Average(), 1, 2, 3)
    few, _ = finished(Constant(), 1)
    (text,) = leaderboards([most, few])
    assert ranking(text) == ["Average"]
    assert "Constant scored only 1 user and is not ranked" in text


def test_a_run_that_scored_nothing_is_in_no_table(finished, make_log):
    nothing, _ = finished(Average(), make_log(cards=1))
    assert leaderboards([nothing]) == []


def test_without_the_ranking_metric_a_run_is_last_with_dashes(finished):
    without, _ = finished(Fsrs6(), 1, 2, panel=Panel([Brier()]))
    with_it, _ = finished(Average(), 1, 2)
    (text,) = leaderboards([without, with_it])
    assert ranking(text) == ["Average", "Fsrs6"]
    assert " nan" not in text
    (alone,) = leaderboards([without])
    assert ranking(alone) == ["Fsrs6"]


def test_a_metric_that_is_not_defined_is_a_dash(finished):
    folder, _ = finished(Average(), 1)
    (text,) = leaderboards([folder])
    row = text.splitlines()[-1]
    assert row.split()[-1] == "-"  # rmse_bins is not in this panel


def test_users_without_a_score_are_left_out_of_the_difference(finished):
    (ours, mine), (theirs, other) = (finished(a, 1, 2, 3) for a in (Fsrs6(), Average()))
    scores = replace(mine.by_user, values=mine.by_user.values.copy())
    scores.values[1] = np.nan
    files.write_table(ours / files.SCORES, tables.scores_table(scores))
    gaps = (scores.values[:, 0] - other.by_user.values[:, 0])[[0, 2]]
    (text,) = leaderboards([ours, theirs])
    assert f"{abs(gaps.mean()):+.4f}" in text


def test_what_learns_while_it_is_tested_is_never_the_best(finished):
    folders = [finished(algorithm, 1, 2, 3)[0] for algorithm in (Constant(p=0.5), MovingAverage())]
    (text,) = leaderboards(folders)
    assert ranking(text) == ["MovingAverage *", "Constant"]
    assert "Constant leads the models that play by the same rules" in text
