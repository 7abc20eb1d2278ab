"""What comparing runs of many users costs, with all files and the page.

python benchmarks/many_users.py 40 100000   # so many runs of so many made-up users
"""

from __future__ import annotations

import resource
import tempfile
import time
from contextlib import redirect_stdout
from dataclasses import asdict
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmark import benchmark

from srs_eval.runs.commands import COMMANDS
from srs_eval.runs.folder import SCORES, SUMMARY, write_json
from srs_eval.runs.summary import Summary
from srs_eval.runs.words import status

_QUICK = ("log_loss", "brier", "auc", "rmse_bins", "mbe", "brier_skill", "normalized_entropy")


@benchmark()
def main(runs: int = 10, users: int = 10_000) -> str:
    """Return what comparing made-up runs costs, which have the quick panel."""
    rng = np.random.default_rng(0)
    easy, reviews = rng.gamma(4, 0.08, users), rng.integers(1_000, 60_000, users)
    rows = tuple(f"{number:016x}" for number in rng.integers(0, 2**63, users))
    with tempfile.TemporaryDirectory() as name:
        for run in range(runs):
            folder = Path(name) / f"{run}_run"
            folder.mkdir()
            values = easy[:, None] * (1 + 0.002 * run) + rng.normal(0, 0.05, (users, len(_QUICK)))
            facts = Summary(label=f"run {run}", users=users, when="previous_review")
            write_json(folder / SUMMARY, asdict(facts))
            columns = dict(zip(_QUICK, values.T, strict=True))
            about = {"user": range(users), "reviews": reviews, "rows": rows}
            pq.write_table(pa.table({**about, **columns}), folder / SCORES)
        words = [name, f"out={name}/compared", "tracking=none"]
        began = time.process_time()
        with redirect_stdout(StringIO()):
            status(*COMMANDS["compare"], words)
        seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return f"{runs} runs of {users:,} users: {seconds:.1f} s CPU, {peak:.1f} GB at most"
