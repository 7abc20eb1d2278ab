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


@pytest.mark.slow
def test_a_command_is_run_and_measured(cohort, tmp_path):
    words = [f"data.path='{cohort}'", "data.users=1", f"hydra.run.dir={tmp_path}", "algo=avg"]
    held_here = np.ones(125_000_000)  # 1 GB, which the command does not hold
    cost = cost_of([*COMMAND, *words])
    assert (tmp_path / "summary.json").is_file()
    assert 0.1 < cost.cpu < 60
    assert 50e6 < cost.peak_bytes < held_here.nbytes
    with pytest.raises(RuntimeError, match="ended with status 2"):
        cost_of(["algo=none_such"])
