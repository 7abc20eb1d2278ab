"""Where models differ: parts add up to the whole, and nothing depends on the order of rows."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from srs_eval.comparison.compare import compare
from srs_eval.comparison.pairing import pair
from srs_eval.comparison.report.files import as_json, markdown
from srs_eval.comparison.strata import FACTS, stratify
from srs_eval.results.run import load_run
from srs_eval.stats.estimate import ratio_of_sums
from srs_eval.stats.resample import sample_of


@pytest.fixture
def two(make_run):
    return make_run("a"), make_run("b", blur=1)


def strata_of(folders, metric="log_loss", baseline=0):
    return stratify(pair([*map(load_run, folders)]), baseline, metric)


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
    assert [fact.name for fact, _ in found.facts] == [
        fact.name for fact in FACTS if fact.name != "size" or len(users) > 1
    ]
    for fact, strata in found.facts:
        assert sum(stratum.n_reviews for stratum in strata) == len(table)
        for stratum in strata:
            low, high = bounds(stratum.label)
            inside = (low <= table[fact.name]) & (table[fact.name] < high)
            weighted = pd.DataFrame({"above": table.gap * inside, "below": 1.0 * inside})
            sums = weighted.div(table["size"], axis=0).groupby(table[cluster]).sum()
            expected = ratio_of_sums(sums.above.to_numpy(), sums.below.to_numpy(), size=1.0)
            assert stratum.n_reviews == inside.sum()
            assert stratum.n_clusters == (sums.below > 0).sum()
            assert stratum.share == pytest.approx(sums.below.sum() / len(users))
            shown = [float(of[1 - baseline]) for of in (stratum.gap, stratum.lo, stratum.hi)]
            assert shown == pytest.approx([expected.mean, *expected.interval()], nan_ok=True)


def test_many_users_are_sampled_by_name_and_outputs_say_so(two, monkeypatch):
    assert "sample" not in as_json(compare([*map(load_run, two)]))["where"]
    monkeypatch.setattr("srs_eval.comparison.strata.READ", 2)
    verdict = compare([*map(load_run, two)])
    few = sample_of(verdict.users, 2)
    assert few == [user for user in verdict.users if user in sample_of(verdict.users[::-1], 2)]
    assert verdict.strata.sample == f"2 of {len(verdict.users)} users"
    alone = stratify(pair(verdict.runs, users=few), 0, "log_loss")
    assert repr(verdict.strata.facts) == repr(alone.facts)
    assert verdict.strata.sample == as_json(verdict)["where"]["sample"]
    assert verdict.strata.sample in markdown(verdict)


def test_neither_order_nor_precision_of_rows_nor_row_groups_matter(two):
    before = strata_of(two)
    for folder in two:
        file = folder / "predictions.parquet"
        table = pq.read_table(file)
        place = table.column_names.index("p")
        table = table.set_column(place, "p", table["p"].cast("float32"))
        shuffled = table.take(np.random.default_rng(0).permutation(len(table)))
        pq.write_table(shuffled if folder == two[1] else table, file, row_group_size=77)
    for (_, one), (_, other) in zip(before.facts, strata_of(two).facts, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a.gap, b.gap, atol=1e-6)


def test_without_predictions_there_is_nothing_to_say(two, make_run):
    folders = two[0], make_run("c", blur=0.5), two[1]
    (folders[1] / "predictions.parquet").unlink()
    assert strata_of(folders, baseline=1) is None
    assert strata_of(folders).runs == (0, 2)
