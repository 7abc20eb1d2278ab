"""Programs that measure: a whole command, the coverage of intervals, and power, all small."""

import os
import sys

import numpy as np
import pytest
from cases import ROOT
from cohort import COMMAND, make_cohort
from commands import process
from first_minute import cost_in_new_folder
from interval_coverage import Quantity, missed, simulated
from measure import cost_of

from srs_eval.data.revlogs_10k import RevlogsFolder
from srs_eval.metrics.means import mean_of_users


@pytest.mark.slow
def test_a_command_is_run_and_measured_on_invented_users(tmp_path):
    make_cohort(tmp_path, users=2, reviews=300)
    source = RevlogsFolder(tmp_path)
    one, other = (source.read(user) for user in source.users())
    assert len(one) == len(other) == 300
    assert not np.array_equal(one.rating, other.rating)
    words = [f"data.path='{tmp_path}'", "data.users=1", f"hydra.run.dir={tmp_path}", "algo=avg"]
    held_here = np.ones(125_000_000)  # 1 GB, which the command does not hold
    cost = cost_of([*COMMAND, *words])
    assert (tmp_path / "summary.json").is_file()
    assert 0.1 < cost.cpu < 60
    assert 50e6 < cost.peak_bytes < held_here.nbytes
    assert 0 < cost_in_new_folder("--help").cpu < cost.cpu
    with pytest.raises(RuntimeError, match="ended with status 1"):
        cost_of(["algo=none_such"])


def test_misses_are_counted_on_the_side_of_the_interval():
    gap = np.random.default_rng(0).normal(0, 1, 400)
    rng = np.random.default_rng([0, 20])
    samples = [gap[rng.integers(0, 400, 20)] for _ in range(600)]
    lo, hi = np.transpose([mean_of_users(sample).interval() for sample in samples])
    found = missed(Quantity("normal", gap, np.ones(400)), 20, 600)
    assert found == (np.mean(lo > gap.mean()), np.mean(hi < gap.mean()))
    headline = [quantity for quantity in simulated(users=3_000) if quantity.is_headline]
    held = [1 - sum(missed(quantity, users, 250)) for quantity in headline for users in (10, 40)]
    assert 0.975 < np.mean(held) <= 1


@pytest.mark.slow
def test_every_benchmark_and_study_can_be_imported(tmp_path):
    """No type checker reads them: a name that the package has no longer would be noticed late."""
    files = [*ROOT.glob("benchmarks/*.py"), *ROOT.glob("experiments/**/*.py")]
    folders = [ROOT, ROOT / "tests", *sorted({file.parent for file in files})]
    code = "import sys; from cases import loaded; [loaded(file) for file in sys.argv[1:]]"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))}
    done = process([sys.executable, "-c", code, *map(str, files)], cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
