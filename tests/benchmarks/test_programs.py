"""Intervals are measured as they should, and every benchmark and study can be imported."""

import os
import sys

import numpy as np
import pytest
from cases import ROOT
from commands import process
from interval_coverage import Quantity, missed, simulated

from srs_eval.metrics.means import mean_of_users


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
