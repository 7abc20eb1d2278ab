"""Reviews in common, and differences by strata of the reviews, recomputed from the files alone."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from srs_eval.comparison.compare import compare
from srs_eval.comparison.entry import read_entry, with_own_names
from srs_eval.comparison.pairing import pair
from srs_eval.comparison.report import as_json, page
from srs_eval.comparison.standings import Standings
from srs_eval.comparison.strata import FACTS, stratify
from srs_eval.metrics.bootstrap import sample_of
from srs_eval.metrics.means import ratio_of_sums
from srs_eval.metrics.scores import um_plus

# By what the scores are recomputed, from nothing but the files.
PLAIN = {
    "log_loss": lambda recalled, p: log_loss(recalled, p, labels=[0, 1]),
    "brier": brier_score_loss,
    "auc": roc_auc_score,
}


def intersected(*folders):
    return pair(with_own_names([*map(read_entry, folders)]), intersect=True)


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
    common = merged(*overlapping)
    found = paired.scores(metric)
    for place, user in enumerate(paired.users):
        of_user = common[common.user == user]
        assert paired.reviews[place] == len(of_user)
        for number, folder in enumerate(overlapping):
            expected = PLAIN[metric](of_user.recalled, of_user[f"p{number}"])
            assert found[place, number] == pytest.approx(expected, rel=1e-12)
            saved = read_entry(folder).values(metric, [user])[0]
            assert (found[place, number] == saved) or user in (4, 5)
    for run in paired.runs:
        assert run.scores.rows.equals(paired.runs[0].scores.rows)
        assert run.scores.reviews.tolist() == paired.reviews.tolist()


def test_outputs_say_what_was_compared_and_strata_are_of_it_too(overlapping):
    runs, common = [read_entry(folder) for folder in overlapping], merged(*overlapping)
    verdict = Standings(intersected(*overlapping), "log_loss", "lower")
    most = sum(max(run.scores.reviews[user] for run in runs) for user in verdict.users)
    (note,) = as_json(verdict)["notes"]
    assert f"{len(common):,} of {most:,} reviews, 12 of 12 users" in note
    assert as_json(verdict)["reviews"] == len(common)
    frame = verdict.strata.frame
    strata = frame[(frame.fact == "lapses") & (frame.run == "b")]
    assert strata.reviews.sum() == len(common)
    losses = [np.log(np.abs(common[p] + common.recalled - 1)) for p in ("p0", "p1")]
    size = common.groupby("user").row.transform("size")
    gap = (strata.difference * strata.share).sum()
    assert gap == pytest.approx(((losses[0] - losses[1]) / size).sum() / 12)


def test_counts_of_lapses_are_those_of_one_run(overlapping):
    for number, folder in enumerate(overlapping):
        more = {"lapses": lambda found, number=number: found.lapses + number * found.row}
        change(folder, "predictions", p=0.75, **more)
        score_anew(folder)
        change(folder, "scores", rmse_bins=1.0)
    found = intersected(*overlapping).scores("rmse_bins")
    assert found[3, 0] == found[3, 1] != 1


@pytest.fixture
def two(make_run):
    return make_run("a"), make_run("b", blur=1)


def strata_of(folders, metric="log_loss", baseline=0):
    return stratify(pair([*map(read_entry, folders)]), baseline, metric)


NAMED = {"same day": (0, 1), "none": (-1, 1), "again": (1, 2), "hard": (2, 3), "good": (3, 4)}


def bounds(label):
    """What values a stratum holds by its name: from one up to, not including, the next."""
    if label in NAMED:
        return NAMED[label]
    first, *last = re.sub("[<≥,+]", "", label).replace("easy", "4").split("-")
    if "<" in label or "+" in label or "≥" in label or label == "easy":
        return (0, float(first)) if "<" in label else (float(first), np.inf)
    is_share = "." in label
    return float(first), float(last[0] if last else first) + (not is_share)


@pytest.mark.parametrize("users", [range(1, 13), [12]])
@pytest.mark.parametrize("baseline", [0, 1])
def test_strata_hold_the_reviews_of_their_names_and_add_up(make_run, users, baseline):
    folders = make_run("a", users), make_run("b", users, blur=1)
    found = strata_of(folders, "brier", baseline)
    table, other = (
        pd.read_parquet(folders[n] / "predictions.parquet") for n in (baseline, 1 - baseline)
    )
    assert (table.row == other.row).all()
    table["gap"] = (other.p - other.recalled) ** 2 - (table.p - table.recalled) ** 2
    table["size"] = table.groupby("user").row.transform("size")
    cluster = "user" if len(users) > 1 else "card"
    frame = found.frame[found.frame.run == "ab"[1 - baseline]]
    assert [*dict.fromkeys(frame.fact)] == [
        fact for fact in FACTS if fact != "size" or len(users) > 1
    ]
    of_users = [
        um_plus(one.p.to_numpy(), two.p.to_numpy(), one.recalled.to_numpy())
        for (_, one), (_, two) in zip(table.groupby("user"), other.groupby("user"), strict=True)
    ]
    of_runs = found.um_plus.set_index(["run", "other"])
    mean, lo, hi = of_runs.loc[("ab"[baseline], "ab"[1 - baseline])]
    assert mean == pytest.approx(np.mean(of_users))
    assert np.isnan(lo) if len(users) == 1 else lo < mean < hi
    for fact, strata in frame.groupby("fact"):
        assert strata.reviews.sum() == len(table)
        for stratum in strata.itertuples():
            low, high = bounds(stratum.label)
            inside = (low <= table[fact]) & (table[fact] < high)
            weighted = pd.DataFrame({"above": table.gap * inside, "below": 1.0 * inside})
            sums = weighted.div(table["size"], axis=0).groupby(table[cluster]).sum()
            expected = ratio_of_sums(sums.above.to_numpy(), sums.below.to_numpy(), size=1.0)
            assert stratum.reviews == inside.sum()
            assert stratum.clusters == (sums.below > 0).sum()
            assert stratum.share == pytest.approx(sums.below.sum() / len(users))
            shown = stratum.difference, stratum.lo, stratum.hi
            assert shown == pytest.approx([expected.mean, *expected.interval()], nan_ok=True)


def test_many_users_are_sampled_by_name_and_outputs_say_so(two, monkeypatch):
    assert "sample" not in as_json(compare([*map(read_entry, two)]))["where"]
    monkeypatch.setattr("srs_eval.comparison.strata.READ", 2)
    verdict = compare([*map(read_entry, two)])
    few = sample_of(verdict.users, 2)
    assert few == [user for user in verdict.users if user in sample_of(verdict.users[::-1], 2)]
    assert verdict.strata.sample == f"2 of {len(verdict.users)} users"
    alone = stratify(pair(verdict.runs, users=few), 0, "log_loss")
    pd.testing.assert_frame_equal(verdict.strata.frame, alone.frame)
    assert verdict.strata.sample == as_json(verdict)["where"]["sample"]
    assert verdict.strata.sample in page(verdict)
