"""`intersect=true`: runs that scored other reviews are compared on those they have in common."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from srs_eval.comparison.pairing import pair
from srs_eval.comparison.report.files import as_json, csv_text, latex, markdown, terminal_text
from srs_eval.comparison.report.html import page
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


def merged(*folders):
    """Reviews that are in every file, with the predictions of each run beside each other."""
    first, *others = (pd.read_parquet(folder / "predictions.parquet") for folder in folders)
    for number, other in enumerate(others, start=1):
        named = other[["user", "row", "p"]].rename(columns={"p": f"p{number}"})
        first = first.merge(named, on=["user", "row"])
    return first.rename(columns={"p": "p0"})


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
        for number in (0, 1):
            expected = PLAIN[metric](of_user.recalled, of_user[f"p{number}"])
            assert found[place, number] == pytest.approx(expected, rel=1e-12)
    assert paired.reviews[3] == 70
    for run in paired.runs:
        assert run.rows == paired.runs[0].rows
        assert list(run.reviews.values()) == paired.reviews.tolist()


def test_users_of_whom_all_scored_the_same_keep_their_scores_to_the_last_digit(overlapping):
    paired = intersected(*overlapping)
    others = [user for user in paired.users if user not in paired.restricted]
    for run, folder in zip(paired.runs, overlapping, strict=True):
        saved = load_run(folder)
        np.testing.assert_array_equal(run.values("auc", others), saved.values("auc", others))
        assert run.values("auc", [4]) != saved.values("auc", [4])


@pytest.mark.usefixtures("page_without_images")
def test_every_output_says_in_numbers_what_was_compared(overlapping):
    runs = [load_run(folder) for folder in overlapping]
    paired = intersected(*overlapping)
    most = sum(max(run.reviews[user] for run in runs) for user in paired.users)
    said = (
        f"Restricted to {len(merged(*overlapping)):,} of {most:,} reviews of 12 of 12 users "
        "that runs scored: those that all runs scored; scores of 2 users were computed anew from "
        "saved predictions"
    )
    assert paired.notes == (said,)
    verdict = Verdict(paired, "log_loss", "lower")
    assert as_json(verdict)["notes"][0] == said
    assert as_json(verdict)["reviews"] == len(merged(*overlapping))
    assert all(said in make(verdict) for make in (terminal_text, markdown, latex, csv_text, page))


def test_parts_of_the_reviews_are_of_those_in_common_too(overlapping):
    common = merged(*overlapping)
    found = stratify(intersected(*overlapping), 0, "brier")
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
    board = Verdict(intersected(*folders), "log_loss", "lower").leaderboard
    common = merged(*folders)
    losses = [log_loss(common.recalled, common[p]) for p in ("p0", "p1")]
    np.testing.assert_allclose(board.mean, losses)
    lo, hi = board.pairs[1][0].interval()
    assert lo < losses[1] - losses[0] < hi
    # Not those of the summaries, which are of other reviews.
    assert not {0.1, 0.9} & {*board.lo, *board.hi}
    assert (board.lo < board.mean).all()
    assert (board.mean < board.hi).all()


def test_one_user_left_of_several_has_an_interval_of_its_own(make_run):
    folders = make_run("a", [12, 1]), make_run("b", [12], blur=1)
    board = Verdict(intersected(*folders), "log_loss", "lower").leaderboard
    (of_several, of_one) = zip(board.lo, board.hi, strict=True)
    assert of_one == (0.1, 0.9)
    assert 0.1 < of_several[0] < board.mean[0] < of_several[1] < 0.9


def test_users_without_a_review_in_common_are_left_out_and_named(make_run):
    folders = (
        make_run("a", rows={3: slice(0, 40), 7: slice(0, 30)}),
        make_run("b", rows={3: slice(40, None), 7: slice(30, None)}),
    )
    paired = intersected(*folders)
    assert set(paired.users) == set(range(1, 13)) - {3, 7}
    assert "Restricted to 10 users of 12" in paired.notes[0]
    assert paired.notes[1].endswith("users 3, 7")


def test_a_failed_fold_is_not_mended_by_leaving_its_reviews_out(make_run):
    folders = make_run("a"), make_run("b", rows={7: slice(0, 50)}, failed=[7])
    paired = intersected(*folders)
    assert 7 not in paired.users
    assert not paired.restricted


def test_without_predictions_only_users_scored_alike_are_left_and_that_is_said(overlapping):
    (overlapping[1] / "predictions.parquet").unlink()
    paired = intersected(*overlapping)
    assert set(paired.users) == set(range(1, 13)) - {4, 5}
    assert "b kept no predictions" in paired.notes[1]
    with pytest.raises(ConfigError) as refused:
        pair([load_run(folder) for folder in overlapping])
    assert "reviews of 10 users" in str(refused.value).splitlines()[-1]
    assert "at most" not in str(refused.value)


def test_a_review_that_a_run_predicted_twice_cannot_be_compared(overlapping):
    place, scores = (overlapping[1] / name for name in ("predictions.parquet", "scores.parquet"))
    once = pd.read_parquet(place)
    twice = pd.concat([once, once[(once.user == 4) & (once.row == 60)].assign(fold=1)])
    pq.write_table(pa.Table.from_pandas(twice), place)
    with pytest.raises(ConfigError, match="user 4 are not of the reviews"):
        intersected(*overlapping)
    named = pd.read_parquet(scores)
    named.loc[named.user == 4, "rows"] = digest_of(overlapping[1], 4)
    pq.write_table(pa.Table.from_pandas(named), scores)
    score_anew(overlapping[1])
    with pytest.raises(ConfigError, match="b scored review 61 of user 4 in more than one fold"):
        intersected(*overlapping)


def score_anew(folder):
    """Write the scores that the predictions of a run have now."""
    place = folder / "scores.parquet"
    scores, predictions = (
        pd.read_parquet(folder / f"{n}.parquet") for n in ("scores", "predictions")
    )
    for name in ("log_loss", "brier"):
        of_users = predictions.groupby("user")[["recalled", "p"]]
        found = of_users.apply(lambda one, score=PLAIN[name]: score(one.recalled, one.p))
        scores[name] = scores.user.map(found)
    pq.write_table(pa.Table.from_pandas(scores), place)


def test_the_constant_to_beat_is_that_of_one_run(overlapping):
    for folder, rate in zip(overlapping, (0.8, 0.7), strict=True):
        changed = pd.read_parquet(folder / "predictions.parquet").assign(train_rate=rate, p=0.75)
        pq.write_table(pa.Table.from_pandas(changed), folder / "predictions.parquet")
        score_anew(folder)
        scored = pd.read_parquet(folder / "scores.parquet").assign(normalized_entropy_train=1.0)
        pq.write_table(pa.Table.from_pandas(scored), folder / "scores.parquet")
    found = intersected(*overlapping).scores("normalized_entropy_train")
    assert found[3, 0] == found[3, 1] != 1


def digest_of(folder, user):
    return rows_fingerprint(SavedPredictions(folder).read(user))


def test_metrics_that_predictions_do_not_tell_are_of_the_other_users_only(overlapping):
    for folder in overlapping:
        place = folder / "scores.parquet"
        pq.write_table(
            pa.Table.from_pandas(pd.read_parquet(place).assign(temporal_rise=0.25)), place
        )
    paired = intersected(*overlapping)
    found = paired.scores("temporal_rise")
    of_common = np.array([user in {4, 5} for user in paired.users])
    assert np.isnan(found[of_common]).all()
    assert (found[~of_common] == 0.25).all()
    assert paired.notes[1] == (
        "Saved predictions do not give temporal_rise, which are of the other users only"
    )


def test_reviews_are_sorted_into_bins_by_one_count_of_their_lapses(overlapping):
    for folder, more in zip(overlapping, (0, 1), strict=True):
        place = folder / "predictions.parquet"
        counted = pd.read_parquet(place)
        counted["lapses"] += more * counted.row
        counted["p"] = 0.75
        pq.write_table(pa.Table.from_pandas(counted), place)
        score_anew(folder)
        scores = folder / "scores.parquet"
        pq.write_table(pa.Table.from_pandas(pd.read_parquet(scores).assign(rmse_bins=1.0)), scores)
    found = intersected(*overlapping).scores("rmse_bins")
    assert found[3, 0] == found[3, 1] < 1
