"""Differences to a baseline in percent, recomputed from the scores by plain numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from saved import load_predictions

from srs_eval.comparison.baseline import first_alike, in_percent
from srs_eval.comparison.compare import compare
from srs_eval.experiment.jobs import JobOutcome, forget_outcomes, write_outcome
from srs_eval.experiment.report import percent_text
from srs_eval.nouns.when import IN_WORDS
from srs_eval.results.run import Run, load_run
from srs_eval.stats.estimate import ratio_of_clustered_sums

MakeRun = Callable[..., Path]


def two(make_run: MakeRun, *users: object, **options: object) -> tuple[Run, Run]:
    folders = make_run("avg", *users, blur=1.0, **options), make_run("mine", *users)
    return load_run(folders[0]), load_run(folders[1])


def test_percentages_are_those_of_the_means_over_users(make_run: MakeRun) -> None:
    avg, mine = two(make_run)
    against = in_percent(mine, avg)
    assert (against.n_users, against.of_users) == (12, 12)
    ours, theirs = (pd.read_parquet(run.place / "scores.parquet") for run in (mine, avg))
    assert [percent.metric for percent in against.percents] == ["log_loss", "brier"]
    verdict = compare([avg, mine])
    for percent in against.percents:
        expected = 100 * (ours[percent.metric].mean() / theirs[percent.metric].mean() - 1)
        assert percent.difference == pytest.approx(expected, rel=1e-12)
        found = verdict.ratio_to_baseline(1, percent.metric).interval()
        assert (percent.lo, percent.hi) == tuple(100 * bound for bound in found)
        assert percent.lo < percent.difference < percent.hi < 0
    same, other = (percent_text(against, when) for when in (avg.when, "at_review"))
    assert IN_WORDS["at_review"] in other
    assert "predicted" not in same


def test_a_single_user_has_an_interval_over_cards_and_days(make_run: MakeRun) -> None:
    avg, mine = two(make_run, [12])
    theirs, ours = (load_predictions(run.place) for run in (avg, mine))
    losses = [-np.log(np.where(one.recalled, one.p, 1 - one.p)) for one in (ours, theirs)]
    gap = losses[0] - losses[1]
    expected = ratio_of_clustered_sums(gap, losses[1], ours.card, ours.day, size=1.0)
    log_loss, brier = in_percent(mine, avg).percents
    assert log_loss.difference == pytest.approx(100 * gap.sum() / losses[1].sum())
    assert (log_loss.lo, log_loss.hi) == pytest.approx([100 * b for b in expected.interval()])
    assert brier.lo < brier.difference < brier.hi
    (mine.place / "predictions.parquet").unlink()
    found, _ = in_percent(mine, avg).percents
    assert found.difference == pytest.approx(log_loss.difference)
    assert np.isnan([found.lo, found.hi]).all()


def test_only_users_with_the_same_reviews_count(make_run: MakeRun) -> None:
    avg = load_run(make_run("avg", blur=1.0, failed=[2]))
    mine = load_run(make_run("mine", other_reviews=[1]))
    against = in_percent(mine, avg)
    assert (against.n_users, against.of_users) == (10, 12)
    users = list(range(3, 13))
    expected = mine.values("brier", users).mean() / avg.values("brier", users).mean() - 1
    assert against.percents[1].difference == pytest.approx(100 * expected)
    nobody = in_percent(mine, load_run(make_run("else", [77])))
    assert (nobody.n_users, nobody.percents) == (0, ())


def test_users_without_a_score_of_one_of_them_do_not_count(make_run: MakeRun) -> None:
    avg, mine = two(make_run)
    for run, user in ((avg, 3), (mine, 5)):
        run.scores["brier"][list(run.rows).index(user)] = np.nan
    users = [user for user in mine.rows if user not in {3, 5}]
    expected = mine.values("brier", users).mean() / avg.values("brier", users).mean() - 1
    assert in_percent(mine, avg).percents[1].difference == pytest.approx(100 * expected)


def test_a_baseline_of_zero_has_no_percentages_and_a_copy_those_of_zero(make_run: MakeRun) -> None:
    avg, mine = two(make_run)
    zero = replace(avg, scores={name: 0 * avg.scores[name] for name in avg.scores})
    assert in_percent(mine, zero).percents == ()
    for users in ([1], [1, 2, 3]):
        first, again = (load_run(make_run("a", users, folder=f"{n}{users}")) for n in "ab")
        numbers = {(p.difference, p.lo, p.hi) for p in in_percent(again, first).percents}
        assert numbers == {(0, 0, 0)}


def test_the_first_finished_job_that_scored_the_same_is_the_baseline(
    make_run: MakeRun, tmp_path: Path
) -> None:
    def job(folder: str, *users: object, **options: object) -> Run:
        place = make_run(folder.partition("_")[2], *users, folder=folder, **options)
        write_outcome(place, JobOutcome(place.name, "ok"))
        return load_run(place)

    job("1_old")
    forget_outcomes(tmp_path)
    job("no_job")
    (job("2_hlr").place / "summary.json").unlink()
    assert first_alike(job("3_first"), tmp_path) is None
    forget_outcomes(tmp_path)
    job("4_else", [101, 102])
    job("0_lacks", failed=[3])
    assert first_alike(job("6_avg"), tmp_path) is None
    job("7_second")
    job("11_later")
    for own, failed, expected in (("10_mine", [], "avg"), ("12_fewer", [3], "lacks")):
        found = first_alike(job(own, failed=failed), tmp_path)
        assert found is not None
        assert found.name == expected
