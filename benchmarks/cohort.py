"""What a whole evaluation of many users costs, from files to summary.json.

    python benchmarks/cohort.py FOLDER users=20,100 command=algo=fsrs6

Makes simulated users of 35,000 reviews each in the layout of anki-revlogs-10k (once; FOLDER
keeps them), runs the command on the first so many of them, and prints what each run took. The
arguments in ``command=`` are added to the command. CPU time is that of the whole process and its
workers, start-up included; the last lines are what each further user adds, and a million users.
Memory is the most a process ever held. Ten thousand users, whose logs are 500 different ones:

    python benchmarks/cohort.py FOLDER users=100,10000 distinct=500 command=compute=processes
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from benchmark import Numbers, Words, benchmark, table
from measure import in_process

from srs_eval.data.reviews import Reviews
from srs_eval.data.synthetic import SyntheticUsers

REVIEWS = 35_000
COMMAND = (
    "data=revlogs_10k",
    "panel=quick",
    "tracking=none",
    "compute=serial",
    "figures=false",
    "curves_per_user=0",
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command took: seconds, and bytes."""

    cpu: float
    wall: float
    peak_bytes: int


def make_cohort(
    folder: Path, users: int, reviews: int = REVIEWS, distinct: int | None = None
) -> None:
    """Write the logs of simulated users as ``revlogs/user_id=N/data.parquet``, N from 1.

    Those that are there already are kept. Users beyond `distinct` have the logs of earlier ones.
    """
    different = min(users, distinct or users)
    missing = {n for n in range(1, different + 1) if not _file(folder, n).exists()}
    if missing:
        for number, log in zip(range(1, different + 1), _full_logs(reviews), strict=False):
            if number in missing:
                _write(_file(folder, number), log)
    for number in range(different + 1, users + 1):
        copy = _file(folder, number)
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            os.link(_file(folder, 1 + (number - 1) % different), copy)


def cost_of(words: Sequence[str]) -> Cost:
    """Run ``python -m srs_eval`` in a process of its own, and wait for it to end well."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "srs_eval", *words]
    measured = subprocess.run(
        [sys.executable, "-I", "-c", _MEASURE, *command],
        stdout=subprocess.PIPE,
        env=environment,
        check=True,
    )
    status, cpu, wall, peak = json.loads(measured.stdout)
    if status:
        raise RuntimeError(f"{' '.join(words)} ended with status {status}")
    return Cost(cpu, wall, peak * (1 if sys.platform == "darwin" else 1024))


# On Linux ru_maxrss of a new process starts from what its parent held, so that the parent is one
# that holds next to nothing.
_MEASURE = """
import json, os, sys, time
began = time.perf_counter()
silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent)
_, status, used = os.wait4(process, 0)
wall = time.perf_counter() - began
cpu = used.ru_utime + used.ru_stime
print(json.dumps([os.waitstatus_to_exitcode(status), cpu, wall, used.ru_maxrss]))
"""


def _full_logs(reviews: int) -> Iterator[Reviews]:
    """Simulate users, and pass over those who study too little to fill a log."""
    source = SyntheticUsers(users=1_000_000, seed=2026, size_scale=1.0, max_reviews=reviews)
    logs = (source.read(user) for user in source.users())
    return (log for log in logs if len(log) == reviews)


def _file(folder: Path, number: int) -> Path:
    return folder / "revlogs" / f"user_id={number}" / "data.parquet"


def _write(path: Path, log: Reviews) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(
        {
            "card_id": log.card,
            "day_offset": log.day,
            "rating": log.rating,
            "state": log.state,
            "duration": pa.array(log.duration_ms).cast(pa.int64(), safe=False),
            "elapsed_days": log.elapsed_days,
            "elapsed_seconds": pa.array(log.elapsed_seconds).cast(pa.int64(), safe=False),
        }
    )
    pq.write_table(table, path)


def _costs(folder: Path, sizes: Sequence[int], words: Sequence[str]) -> Iterator[Cost]:
    """Run the command on so many users each; the first time on one, to compile the kernels."""
    for size in (1, *sizes):
        with tempfile.TemporaryDirectory() as output:
            given = (f"data.path='{folder}'", f"data.users='1-{size}'", f"hydra.run.dir={output}")
            cost = cost_of([*_command(words), *given])
        yield cost


def _command(words: Sequence[str]) -> list[str]:
    """Return the words of the command, of which given ones replace others of the same key."""
    keys = {word.partition("=")[0] for word in words}
    return [*(word for word in COMMAND if word.partition("=")[0] not in keys), *words]


@benchmark("cohort")
def main(
    folder: Path,
    users: Numbers = (20, 100),
    distinct: int | None = None,
    command: Words = ("algo=fsrs6",),
) -> str:
    """Return a row for each number of users, and one for a further user."""
    sizes = sorted(users)
    # In a process of its own: at its start a child counts the memory of its parent.
    in_process(make_cohort, folder, sizes[-1], REVIEWS, distinct)
    costs = list(islice(_costs(folder, sizes, command), 1, None))
    rows = [
        (f"{size:,} users", f"{c.cpu:.2f} s", f"{c.wall:.2f} s", f"{c.peak_bytes / 1e6:.0f} MB")
        for size, c in zip(sizes, costs, strict=True)
    ]
    if len(sizes) > 1:
        first, last, further = costs[0], costs[-1], sizes[-1] - sizes[0]
        cpu, wall = (last.cpu - first.cpu) / further, (last.wall - first.wall) / further
        memory = f"{(last.peak_bytes - first.peak_bytes) / further / 1e6:.2f} MB"
        rows.append(("a further user", f"{cpu * 1e3:.1f} ms", f"{wall * 1e3:.1f} ms", memory))
        hours = (f"{seconds * 1e6 / 3600:.1f} h" for seconds in (cpu, wall))
        rows.append(("a million users", *hours, ""))
    print(" ".join(["python -m srs_eval", *_command(command)]))
    return table(["", "CPU", "wall", "peak memory"], rows)
