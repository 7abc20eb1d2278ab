"""Draws of the lottery are found again, and every study is loaded; its tables hold the rest."""

import os
import sys

import numpy as np
import pytest
from cases import ROOT
from commands import process
from months import UNEXPLAINED, reconstructed
from rules import Rule
from simulations import write_collection

from srs_eval.data.anki.collection import AnkiCollection


@pytest.mark.parametrize("rule", Rule)
def test_every_rule_is_recognised_and_every_answer_accounted_for(tmp_path, rule):
    path = tmp_path / "simulated.anki2"
    write_collection(path, np.random.default_rng(1), cards=80, rule=rule)
    log = AnkiCollection(path).read_with_table(path.stem)
    draws = reconstructed(log, {})
    own = (draws.table["rule"] == rule).to_numpy()
    assert own.sum() > 0.8 * len(own) > 200  # short months are alike
    assert sum(draws.excluded.values()) + len(own) == len(log.reviews)
    assert UNEXPLAINED not in draws.excluded
    row = log.rows[np.searchsorted(log.reviews.row, draws.table["row"])]
    assert (draws.table["days"] == log.revlog.ivl[row])[own].all()
    is_drawn = draws.lots.days == draws.table["days"].to_numpy()[draws.lots.answer]
    assert draws.lots.mean(is_drawn.astype(float)).min() > 0


@pytest.mark.slow
def test_every_benchmark_and_study_can_be_imported(tmp_path):
    """No type checker reads them: a name that the package has no longer would be noticed late."""
    files = [*ROOT.glob("benchmarks/*.py"), *ROOT.glob("experiments/**/*.py")]
    folders = [ROOT, ROOT / "tests", *sorted({file.parent for file in files})]
    code = "import sys; from cases import loaded; [loaded(file) for file in sys.argv[1:]]"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))}
    done = process([sys.executable, "-c", code, *map(str, files)], cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
