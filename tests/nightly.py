"""Run what takes an hour or more and guards what rarely changes: ``./check nightly``.

Every part runs, also after one that failed; the last lines say how each ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

DAY = int(time.time()) // 86400
SPREAD = ("-n", str((os.cpu_count() or 1) * 3 // 2), "--dist", "worksteal", "-q")
PYTEST = (sys.executable, "-m", "pytest")
QUICK = ("-m", "not slow and not nightly")

PARTS: Mapping[str, Sequence[str]] = {
    "tests marked nightly": (*PYTEST, "-m", "nightly", *SPREAD, "--durations=30"),
    "quick tests in a random order": (*PYTEST, *QUICK, *SPREAD, "--shuffle", str(DAY)),
    "tests of numbers on other processors": (sys.executable, "tests/processors.py"),
    "mutants": (sys.executable, "tests/mutants.py", "--sample", "25", "--seed", str(DAY)),
    "campaign of faults": (
        *(sys.executable, "tests/faults/campaign.py"),
        *("--minutes", "20", "--seed", str(DAY)),
    ),
}


def main() -> int:
    """Run each part; return 1 if one failed."""
    ends = []
    for name, command in PARTS.items():
        print(f"=== {name}: {' '.join(command)}", flush=True)  # noqa: T201
        begin = time.monotonic()
        status = subprocess.run(command, check=False).returncode
        seconds = time.monotonic() - begin
        ends.append((status, f"{name}: {'failed' if status else 'passed'} in {seconds:.0f} s"))
    print(*(line for _, line in ends), sep="\n")  # noqa: T201
    return int(any(status for status, _ in ends))


if __name__ == "__main__":
    sys.exit(main())
