"""Differences to a baseline in percent, recomputed from the scores by plain numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from srs_eval.comparison.baseline import first_alike, in_percent
from srs_eval.comparison.compare import compare
from srs_eval.experiment.jobs import JobOutcome, forget_outcomes, write_outcome
from srs_eval.experiment.report import percent_text
from srs_eval.nouns.when import IN_WORDS
from srs_eval.results.run import Run, load_run

MakeRun = Callable[..., Path]


@pytest.fixture
def avg_and_mine(make_run: MakeRun) -> tuple[Run, Run]:
    return load_run(make_run("avg", blur=1.0)), load_run(make_run("mine"))


def test_percentages_are_those_of_the_means_over_users(avg_and_mine: tuple[Run, Run]) -> None:
    avg, mine = avg_and_mine
    against = in_percent(mine, avg)
    assert (against.n_users, against.of_users) == (12, 12)
    ours, theirs = (pd.read_parquet(run.place / "scores.parquet") for run in (mine, avg))
    assert [percent.metric for percent in against.percents] == ["log_loss", "brier"]
    verdict = compare([avg, mine])
    for percent in against.percents:
        found = verdict.ratio_to_baseline(1, percent.metric)
        assert (percent.lo, percent.hi) == tuple(100 * bound for bound in found.interval())
        assert percent.difference == 100 * found.mean
        expected = 100 * (ours[percent.metric].mean() / theirs[percent.metric].mean() - 1)
        assert percent.difference == pytest.approx(expected, rel=1e-12)
        assert percent.lo < percent.difference < percent.hi < 0


def test_a_single_user_has_an_interval_over_cards_and_days(make_run: MakeRun) -> None:
    avg, mine = (load_run(make_run(name, [12], blur=blur)) for name, blur in (("a", 1), ("b", 0)))
    log_loss, brier = in_percent(mine, avg).percents
    tables = [
        pd.read_parquet(run.place / "predictions.parquet").sort_values("row") for run in (mine, avg)
    ]
    scores = [-np.log(np.where(t.recalled, t.p, 1 - t.p)) for t in tables]
    by_card = pd.DataFrame({"ours": scores[0], "theirs": scores[1], "card": tables[0].card})
    sums = by_card.groupby("card").sum().to_numpy()
    drawn = np.random.default_rng(1).integers(0, len(sums), (4_000, len(sums)))
    totals = sums[drawn].sum(1)
    lo, hi = np.quantile(100 * (totals[:, 0] / totals[:, 1] - 1), [0.005, 0.995])
    assert log_loss.difference == pytest.approx(100 * (scores[0].sum() / scores[1].sum() - 1))
    # The variance by day is added.
    assert (log_loss.hi - log_loss.lo) / (hi - lo) == pytest.approx(1.4, abs=0.3)
    assert brier.lo < brier.difference < brier.hi


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


def test_a_baseline_of_zero_has_no_percentages(avg_and_mine: tuple[Run, Run]) -> None:
    avg, mine = avg_and_mine
    zero = replace(avg, scores={name: 0 * avg.scores[name] for name in avg.scores})
    assert in_percent(mine, zero).percents == ()


def test_one_user_without_predictions_has_no_interval(make_run: MakeRun) -> None:
    avg, mine = (load_run(make_run(name, [1], blur=b)) for name, b in (("a", 1), ("b", 0)))
    (mine.place / "predictions.parquet").unlink()
    assert all(np.isnan([p.lo, p.hi]).all() for p in in_percent(mine, avg).percents)


def test_a_run_that_predicts_as_its_baseline_does_not_differ(make_run: MakeRun) -> None:
    for users in ([1], [1, 2, 3]):
        folders = (make_run("a", users, folder=f"{n}_{len(users)}") for n in range(2))
        first, again = map(load_run, folders)
        numbers = {(p.difference, p.lo, p.hi) for p in in_percent(again, first).percents}
        assert numbers == {(0, 0, 0)}


@pytest.fixture
def make_job(make_run: MakeRun) -> MakeRun:
    """Write the folder of a job of the sweep that is under way."""

    def make(label: str, *users: object, **options: object) -> Path:
        place = make_run(label, *users, **options)
        write_outcome(place, JobOutcome(label, "ok"))
        return place

    return make


def test_the_first_job_that_scored_the_same_is_the_baseline(
    make_job: MakeRun, tmp_path: Path
) -> None:
    make_job("else", [101, 102], folder="0_else")
    make_job("lacks", failed=[3], folder="1_lacks")
    first = load_run(make_job("avg", folder="2_avg"))
    make_job("hlr", folder="3_hlr")
    mine = load_run(make_job("mine", folder="10_mine"))
    make_job("later", folder="11_later")
    found = first_alike(mine, tmp_path)
    assert found is not None
    assert found.name == "avg"
    assert in_percent(mine, found).n_users == 12
    assert first_alike(first, tmp_path) is None
    fewer = load_run(make_job("fewer", failed=[3], folder="12_fewer"))
    found = first_alike(fewer, tmp_path)
    assert found is not None
    assert found.name == "lacks"


def test_what_is_no_finished_job_of_this_sweep_is_no_baseline(
    make_run: MakeRun, make_job: MakeRun, tmp_path: Path
) -> None:
    make_job("avg", folder="avg")
    (make_job("hlr", folder="0_hlr") / "summary.json").unlink()
    make_job("old", folder="1_old")
    forget_outcomes(tmp_path)
    mine = load_run(make_job("mine", folder="2_mine"))
    assert first_alike(mine, tmp_path) is None


def test_a_baseline_of_another_time_is_remarked(make_run):
    against = in_percent(load_run(make_run("mine")), load_run(make_run("avg")))
    earlier = against.baseline.when
    same, other = (percent_text(against, when) for when in (earlier, "at_review"))
    assert earlier != "at_review"
    assert IN_WORDS["at_review"] in other
    assert "predicted" not in same
