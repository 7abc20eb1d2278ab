"""`intersect=true`: runs that scored other reviews are compared on those they have in common."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from srs_eval.comparison.pairing import pair
from srs_eval.comparison.report.files import as_json
from srs_eval.comparison.strata import stratify
from srs_eval.comparison.verdict import Verdict
from srs_eval.errors import ConfigError
from srs_eval.nouns.predictions import rows_fingerprint
from srs_eval.results.predicted import SavedPredictions
from srs_eval.results.run import load_run, with_own_names

# By what the scores are recomputed, from nothing but the files.
PLAIN = {
    "log_loss": lambda recalled, p: log_loss(recalled, p, labels=[0, 1]),
    "brier": brier_score_loss,
    "auc": roc_auc_score,
}


def intersected(*folders):
    return pair(with_own_names(map(load_run, folders)), intersect=True)


def verdict_of(*folders):
    return Verdict(intersected(*folders), "log_loss", "lower")


def merged(*folders):
    """Reviews that are in every file, with the predictions of each run beside each other."""
    first, *others = (pd.read_parquet(folder / "predictions.parquet") for folder in folders)
    for number, other in enumerate(others, start=1):
        named = other[["user", "row", "p"]].rename(columns={"p": f"p{number}"})
        first = first.merge(named, on=["user", "row"])
    return first.rename(columns={"p": "p0"})


def change(folder, table, **columns):
    """Set columns of a table of a run, each to a value or to what is computed of the table."""
    file = folder / f"{table}.parquet"
    pd.read_parquet(file).assign(**columns).to_parquet(file)


def score_anew(folder):
    """Write the scores that the predictions of a run have now."""
    predictions = pd.read_parquet(folder / "predictions.parquet")
    for name in ("log_loss", "brier"):
        of_users = predictions.groupby("user")[["recalled", "p"]]
        found = of_users.apply(lambda one, score=PLAIN[name]: score(one.recalled, one.p))
        change(folder, "scores", **{name: lambda scores, found=found: scores.user.map(found)})


@pytest.fixture
def overlapping(make_run):
    """Two runs that scored other reviews of users 4 and 5, some of them in common."""
    return (
        make_run("a", rows={4: slice(0, 100)}),
        make_run("b", rows={4: slice(30, None), 5: slice(0, 90)}, blur=1),
    )


@pytest.mark.parametrize("metric", PLAIN)
def test_scores_are_those_of_the_merged_files(overlapping, metric):
    paired = intersected(*overlapping)
    assert paired.users == tuple(range(1, 13))
    assert paired.restricted == {4, 5}
    common = merged(*overlapping)
    found = paired.scores(metric)
    for place, user in enumerate(paired.users):
        of_user = common[common.user == user]
        assert paired.reviews[place] == len(of_user)
        for number, folder in enumerate(overlapping):
            expected = PLAIN[metric](of_user.recalled, of_user[f"p{number}"])
            assert found[place, number] == pytest.approx(expected, rel=1e-12)
            saved = load_run(folder).values(metric, [user])[0]
            assert (found[place, number] == saved) or user in paired.restricted
    for run in paired.runs:
        assert run.rows == paired.runs[0].rows
        assert list(run.reviews.values()) == paired.reviews.tolist()


def test_outputs_say_what_was_compared_and_strata_are_of_it_too(overlapping):
    runs, common = [load_run(folder) for folder in overlapping], merged(*overlapping)
    verdict = verdict_of(*overlapping)
    most = sum(max(run.reviews[user] for run in runs) for user in verdict.users)
    said = (
        f"Restricted to {len(common):,} of {most:,} reviews of 12 of 12 users that runs scored: "
        "those that all runs scored; scores of 2 users were computed anew from saved predictions"
    )
    assert as_json(verdict)["notes"] == [said]
    assert as_json(verdict)["reviews"] == len(common)
    found = stratify(verdict.paired, 0, "brier")
    (strata,) = [part for fact, part in found.facts if fact.name == "lapses"]
    assert sum(stratum.n_reviews for stratum in strata) == len(common)
    squares = [(common[f"p{number}"] - common.recalled) ** 2 for number in (0, 1)]
    size = common.groupby("user").row.transform("size")
    for stratum, part in zip(strata, ([0], [1], [2], [3, 4], [5, 6, 7, 8]), strict=False):
        held = common.lapses.isin(part)
        expected = ((squares[1] - squares[0]) / size)[held].sum() / (1 / size)[held].sum()
        assert stratum.gap[1] == pytest.approx(expected)


def test_one_user_is_compared_review_by_review_on_those_in_common(make_run):
    folders = (
        make_run("a", [12], rows={12: slice(0, 900)}),
        make_run("b", [12], rows={12: slice(500, None)}, blur=1),
    )
    board = verdict_of(*folders).leaderboard
    common = merged(*folders)
    losses = [log_loss(common.recalled, common[p]) for p in ("p0", "p1")]
    np.testing.assert_allclose(board.mean, losses)
    lo, hi = board.pairs[1][0].interval()
    assert lo < losses[1] - losses[0] < hi
    # Not those of the summaries, which are of other reviews.
    assert not {0.1, 0.9} & {*board.lo, *board.hi}
    assert ((board.lo < board.mean) & (board.mean < board.hi)).all()


def test_a_review_that_a_run_predicted_twice_cannot_be_compared(overlapping):
    folder = overlapping[1]
    once = pd.read_parquet(folder / "predictions.parquet")
    twice = pd.concat([once, once[(once.user == 4) & (once.row == 60)].assign(fold=1)])
    twice.to_parquet(folder / "predictions.parquet")
    digest = rows_fingerprint(SavedPredictions(folder).read(4))
    change(folder, "scores", rows=lambda t: t.rows.mask(t.user == 4, digest))
    score_anew(folder)
    with pytest.raises(ConfigError, match="b scored review 61 of user 4 in more than one fold"):
        intersected(*overlapping)


@pytest.mark.parametrize("metric", ["normalized_entropy_train", "rmse_bins"])
def test_the_constant_to_beat_and_counts_of_lapses_are_those_of_one_run(overlapping, metric):
    for number, folder in enumerate(overlapping):
        more = {
            "lapses": lambda found, number=number: found.lapses + number * found.row,
            "train_rate": 0.8 - 0.1 * number,
        }
        change(folder, "predictions", p=0.75, **more)
        score_anew(folder)
        change(folder, "scores", **{metric: 1.0})
    found = intersected(*overlapping).scores(metric)
    assert found[3, 0] == found[3, 1] != 1
