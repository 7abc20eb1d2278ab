"""What the first minute costs: the help, one run, small logs, and the quick start.

    python benchmarks/first_minute.py

Each command runs in a new folder, after one that is not counted, and the least of the repeats is
printed. Run it in turn in two checkouts to compare them: machines differ, and are never alone.
The quick start fits and draws in workers, whose time is not among its CPU seconds.
"""

from __future__ import annotations

import tempfile
from contextlib import chdir

from benchmark import benchmark, table
from measure import Cost, cost_of

_SMALL = ("algo=avg", "panel=quick", "tracking=none", "figures=false", "data.max_reviews=130")
COMMANDS = {
    "--help": ("--help",),
    "algo=avg": ("algo=avg", "data.max_reviews=5000"),
    "10 users of 130 reviews": (*_SMALL, "data.users=10"),
    "310 users of 130 reviews": (*_SMALL, "data.users=310"),
    "quick start": ("-m", "experiment=quick_start"),
}


def cost_in_new_folder(*words: str) -> Cost:
    """Run a command where nothing was run before."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        return cost_of(words)


@benchmark("first_minute")
def main(repeats: int = 3) -> str:
    """Run the commands."""
    cost_in_new_folder(*COMMANDS["algo=avg"])
    rows = []
    for name, words in COMMANDS.items():
        costs = [cost_in_new_folder(*words) for _ in range(repeats)]
        least = min(costs, key=lambda cost: cost.cpu)
        rows.append((name, f"{least.cpu:.2f}", f"{least.wall:.2f}", least.peak_bytes >> 20))
    return table(["command", "CPU s", "wall s", "peak MiB"], rows)
