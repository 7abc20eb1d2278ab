"""Where models differ: parts add up to the whole, and nothing depends on the order of rows."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from saved import load_predictions

from srs_eval.comparison.pairing import pair
from srs_eval.comparison.report.tables import strata_table
from srs_eval.comparison.strata import FACTS, stratify
from srs_eval.comparison.verdict import Verdict
from srs_eval.results.run import load_run, with_own_names
from srs_eval.stats.estimate import ratio_of_sums
from srs_eval.stats.resample import sample_of


def paired_of(*folders):
    return pair(with_own_names(map(load_run, folders)))


def test_parts_add_up_to_the_mean_difference_over_users(make_run):
    paired = paired_of(make_run("a"), make_run("b", blur=1))
    scores = paired.scores("log_loss")
    expected = (scores[:, 1] - scores[:, 0]).mean()
    found = stratify(paired, 0, "log_loss")
    assert [fact.name for fact, _ in found.facts] == [fact.name for fact in FACTS]
    for _, strata in found.facts:
        assert sum(s.share for s in strata) == pytest.approx(1)
        assert sum(s.share * s.gap[1] for s in strata) == pytest.approx(expected)
        assert sum(s.n_reviews for s in strata) == paired.reviews.sum()


def test_many_users_are_sampled_by_name_and_outputs_say_so(make_run, monkeypatch):
    folders = make_run("a"), make_run("b", blur=1)
    paired = paired_of(*folders)
    assert stratify(paired, 0, "log_loss").sample == ""
    monkeypatch.setattr("srs_eval.comparison.strata.READ", 2)
    few = sample_of(paired.users, 2)
    assert few == [user for user in paired.users if user in sample_of(paired.users[::-1], 2)]
    found = stratify(paired, 0, "log_loss")
    assert found.sample == f"2 of {len(paired.users)} users"
    alone = stratify(pair(paired.runs, users=few), 0, "log_loss")
    assert repr(found.facts) == repr(alone.facts)
    verdict = Verdict(paired, "log_loss", "lower")
    assert found.sample in strata_table(verdict, found, *found.facts[0]).caption


def test_by_prediction_means_by_that_of_the_baseline(make_run):
    folders = make_run("a"), make_run("b", blur=1)
    for baseline in (0, 1):
        found = stratify(paired_of(*folders), baseline, "log_loss")
        p = load_predictions(folders[baseline]).p
        (strata,) = [part for fact, part in found.facts if fact.name == "p"]
        assert strata[0].n_reviews == (p < 0.5).sum()


def shuffled(folder, order, group):
    table = pq.read_table(folder / "predictions.parquet").take(order)
    pq.write_table(table, folder / "predictions.parquet", row_group_size=group)


def test_neither_order_of_rows_nor_row_groups_matter(make_run):
    folders = make_run("a"), make_run("b", blur=1)
    before = stratify(paired_of(*folders), 0, "log_loss")
    rows = len(load_predictions(folders[1]))
    shuffled(folders[1], np.random.default_rng(0).permutation(rows), 77)
    after = stratify(paired_of(*folders), 0, "log_loss")
    for (_, one), (_, other) in zip(before.facts, after.facts, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a.gap, b.gap)


def test_predictions_in_single_precision_are_a_runs_own(make_run):
    folders = make_run("a"), make_run("b", blur=1)
    for folder in folders:
        file = folder / "predictions.parquet"
        table = pq.read_table(file)
        place = table.column_names.index("p")
        pq.write_table(table.set_column(place, "p", table["p"].cast("float32")), file)
    assert stratify(paired_of(*folders), 0, "log_loss") is not None


def test_without_predictions_there_is_nothing_to_say(make_run):
    folders = make_run("a"), make_run("b", blur=0.5), make_run("c", blur=1)
    (folders[1] / "predictions.parquet").unlink()
    paired = paired_of(*folders)
    assert stratify(paired, 1, "log_loss") is None
    assert stratify(paired, 0, "log_loss").runs == (0, 2)


def test_a_part_has_the_interval_of_a_ratio_over_users(make_run):
    folders = make_run("a"), make_run("b", blur=1)
    found = stratify(paired_of(*folders), 0, "brier")
    first, second = (load_predictions(folder) for folder in folders)
    gaps = (second.p - second.recalled) ** 2 - (first.p - first.recalled) ** 2
    inside = (first.elapsed_days >= 2) & (first.elapsed_days < 4)
    sizes = np.bincount(first.user)
    above = np.bincount(first.user, gaps * inside) / sizes
    below = np.bincount(first.user, inside) / sizes
    strata = {s.label: s for fact, part in found.facts if fact.name == "elapsed_days" for s in part}
    found_interval = strata["2-3"].lo[1], strata["2-3"].hi[1]
    assert found_interval == pytest.approx(ratio_of_sums(above, below).interval())
