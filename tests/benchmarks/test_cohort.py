"""The benchmark of a whole command: its data, and how it measures."""

import numpy as np
import pytest
from cohort import COMMAND, cost_of, make_cohort

from srs_eval.data.revlogs_10k import RevlogsFolder


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cohort")
    make_cohort(folder, users=2, reviews=300)
    return folder


def test_every_user_fills_a_log(cohort):
    source = RevlogsFolder(cohort)
    one, other = (source.read(user) for user in source.users())
    assert len(one) == len(other) == 300
    assert not np.array_equal(one.rating, other.rating)
    assert one.elapsed_seconds is not None


def test_a_cohort_that_is_there_only_grows(cohort):
    before = (cohort / "revlogs" / "user_id=1" / "data.parquet").stat().st_mtime_ns
    make_cohort(cohort, users=3, reviews=300)
    assert (cohort / "revlogs" / "user_id=1" / "data.parquet").stat().st_mtime_ns == before
    assert RevlogsFolder(cohort).users() == (1, 2, 3)


def test_users_beyond_the_distinct_ones_have_the_logs_of_earlier_ones(tmp_path):
    make_cohort(tmp_path, users=3, reviews=300, distinct=2)
    source = RevlogsFolder(tmp_path)
    first, second, third = (source.read(user).card for user in source.users())
    assert np.array_equal(first, third)
    assert not np.array_equal(first, second)


@pytest.mark.slow
def test_a_command_is_run_and_measured(cohort, tmp_path):
    words = [f"data.path='{cohort}'", "data.users=1", f"hydra.run.dir={tmp_path}", "algo=avg"]
    cost = cost_of([*COMMAND, *words])
    assert (tmp_path / "summary.json").is_file()
    assert 0.1 < cost.cpu < 60
    assert 50e6 < cost.peak_bytes < 2e9
    with pytest.raises(RuntimeError, match="ended with status 2"):
        cost_of(["algo=none_such"])
