"""Reviews in common, and differences by strata of the reviews, recomputed from the files alone."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from srs_eval.comparison.compare import compare
from srs_eval.comparison.entry import read_entry
from srs_eval.comparison.report import as_json, page
from srs_eval.comparison.strata import FACTS, _labels, stratify
from srs_eval.metrics.bootstrap import sample_of
from srs_eval.metrics.means import ratio_of_sums
from srs_eval.metrics.scores import um_plus

# By what the scores are recomputed, from nothing but the files.
PLAIN = {
    "log_loss": lambda recalled, p: log_loss(recalled, p, labels=[0, 1]),
    "brier": brier_score_loss,
    "auc": roc_auc_score,
}


def standings_of(folders, metric="log_loss", **options):
    return compare([*map(read_entry, folders)], metric=metric, **options)


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
    rows = {"4": (30, None), "5": (0, 90)}
    return make_run("a", rows={"4": (0, 100)}), make_run("b", rows=rows, blur=1)


@pytest.mark.parametrize("metric", PLAIN)
def test_scores_are_those_of_the_merged_files(overlapping, metric):
    standings = standings_of(overlapping, metric, intersect=True)
    assert standings.users == [*range(1, 13)]
    common = merged(*overlapping)
    for user, of_user in common.groupby("user"):
        assert standings.reviews[user] == len(of_user)
        for number, folder in enumerate(overlapping):
            score = standings.scores.loc[user, "ab"[number]]
            expected = PLAIN[metric](of_user.recalled, of_user[f"p{number}"])
            assert score == pytest.approx(expected, rel=1e-12)
            saved = read_entry(folder).scores.loc[user, metric]
            assert (score == saved) or user in (4, 5)
    (note,) = as_json(standings)["notes"]
    assert f"{len(common):,} of " in note
    strata = standings.strata.frame.groupby(["fact", "run"]).reviews.sum()
    assert {*strata[["lapses", "size"]]} == {len(common)}
    a, b = (run.scores for run in standings.runs.values())
    assert a.rows.equals(b.rows)
    assert a.reviews.tolist() == b.reviews.tolist() == standings.reviews.tolist()


def test_counts_of_lapses_are_those_of_one_run(overlapping):
    """Runs that count lapses differently, and predict the same, have the same bins."""
    for number, folder in enumerate(overlapping):
        table, scores = (folder / f"{name}.parquet" for name in ("predictions", "scores"))
        read = pd.read_parquet(table)
        read.assign(p=0.75, lapses=read.lapses + number * read.row).to_parquet(table)
        pd.read_parquet(scores).assign(rmse_bins=1.0).to_parquet(scores)
    scores = standings_of(overlapping, "rmse_bins", intersect=True).scores
    assert scores.a[4] == scores.b[4] != 1


def bounds(fact, label):
    """What values a stratum holds by its name: from one up to, not including, the next."""
    if fact == "last_rating":
        number = ["none", "again", "hard", "good", "easy"].index(label)
        return number, number + 1
    first, _, last = label.replace(",", "").partition("-")
    if "+" in first:
        return float(first[:-1]), np.inf
    return float(first), float(last or first) + (fact != "p")


def test_strata_have_these_names():
    assert {fact: " ".join(_labels(fact)) for fact in FACTS} == {
        "nth_review": "2 3 4 5-6 7-9 10-14 15-24 25+",
        "elapsed_days": "0 1 2-3 4-7 8-14 15-30 31-90 91-365 366+",
        "lapses": "0 1 2 3-4 5-8 9+",
        "last_rating": "none again hard good easy",
        "recalls": "0 1 2 3-4 5-9 10+",
        "p": "0-0.5 0.5-0.7 0.7-0.8 0.8-0.85 0.85-0.9 0.9-0.95 0.95-0.98 0.98+",
        "size": "1-999 1,000-2,999 3,000-9,999 10,000-29,999 30,000+",
    }


@pytest.mark.parametrize("users", [range(1, 13), [12]])
@pytest.mark.parametrize("baseline", ["a", "b"])
def test_strata_hold_the_reviews_of_their_names_and_add_up(make_run, users, baseline):
    other = "ba"["ab".index(baseline)]
    folders = {"a": make_run("a", users), "b": make_run("b", users, blur=1)}
    strata = standings_of(folders.values(), "brier", baseline=baseline).strata
    table, second = (pd.read_parquet(folders[n] / "predictions.parquet") for n in (baseline, other))
    assert (table.row == second.row).all()
    table["gap"] = (second.p - second.recalled) ** 2 - (table.p - table.recalled) ** 2
    table["size"] = table.groupby("user").row.transform("size")
    cluster = "user" if len(users) > 1 else "card"
    frame = strata.frame[strata.frame.run == other]
    facts = [fact for fact in FACTS if fact != "size" or len(users) > 1]
    assert [*dict.fromkeys(frame.fact)] == facts
    of_users = [
        um_plus(one.p.to_numpy(), two.p.to_numpy(), one.recalled.to_numpy())
        for (_, one), (_, two) in zip(table.groupby("user"), second.groupby("user"), strict=True)
    ]
    mean, lo, hi = strata.um_plus.set_index(["run", "other"]).loc[(baseline, other)]
    assert mean == pytest.approx(np.mean(of_users))
    assert np.isnan(lo) if len(users) == 1 else lo < mean < hi
    gap = (table.gap / table["size"]).sum() / len(users)
    for fact, of_fact in frame.groupby("fact"):
        assert of_fact.reviews.sum() == len(table)
        assert (of_fact.difference * of_fact.share).sum() == pytest.approx(gap)
        for stratum in of_fact.itertuples():
            low, high = bounds(fact, stratum.label)
            inside = (low <= table[fact]) & (table[fact] < high)
            weighted = pd.DataFrame({"above": table.gap * inside, "below": 1.0 * inside})
            sums = weighted.div(table["size"], axis=0).groupby(table[cluster]).sum()
            expected = ratio_of_sums(sums.above.to_numpy(), sums.below.to_numpy(), size=1.0)
            assert stratum.reviews == inside.sum()
            assert stratum.clusters == (sums.below > 0).sum()
            assert stratum.share == pytest.approx(sums.below.sum() / len(users))
            shown = stratum.difference, stratum.lo, stratum.hi
            assert shown == pytest.approx([expected.mean, *expected.interval()], nan_ok=True)


def test_many_users_are_sampled_by_name_and_outputs_say_so(make_run, monkeypatch):
    folders = make_run("a"), make_run("b", blur=1)
    whole = standings_of(folders, "auc").strata
    assert (whole.score, whole.sample) == ("log_loss", "")
    monkeypatch.setattr("srs_eval.comparison.strata.READ", 2)
    standings = standings_of(folders)
    few = sample_of(standings.users, 2)
    assert few == [user for user in standings.users if user in sample_of(standings.users[::-1], 2)]
    assert standings.strata.sample == "2 of 12 users"
    alone = stratify(standings.runs, few, "a", "log_loss")
    pd.testing.assert_frame_equal(standings.strata.frame, alone.frame)
    assert standings.strata.sample == as_json(standings)["where"]["sample"]
    assert standings.strata.sample in page(standings)
