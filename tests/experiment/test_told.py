"""What runs and sweeps say, and how their jobs ended, in one text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Here

SIMULATED = (
    *("data.users=2", "data.size_scale=0.02", "data.max_reviews=400", "data.version=1"),
    *("panel=quick", "tracking=none", "figures=false", "curves_per_user=0"),
)
CSV = ("data=csv", "data.columns.user=user", *SIMULATED[4:])
ROWS = "card,user,rating,time\n" + "".join(
    f"{n % 3},{user},{3 - 2 * (n % 7 == 0)},{1614600000 + 86400 * n}\n"
    for user in ("ann", "ben")
    for n in range(40)
)
COMMANDS = {
    "runs_told": (
        "algo=avg hydra.run.dir=one",
        "algo=moving_avg hydra.run.dir=two baseline=one",
        "algo=avg hydra.run.dir=one resume=true",
        "algo=avg hydra.run.dir=one resume=true seed=3",
        "algo=avg data.path=bad.csv hydra.run.dir=bad",
        "algo=fsrs6 algo.fit=default data.path=good.csv protocol=srs_benchmark_secs",
    ),
    "sweeps_told": (
        "-m algo=avg,moving_avg,avg hydra.sweep.dir=many",
        "-m algo=avg data.path=good.csv,bad.csv,none.csv,bad.csv hydra.sweep.dir=logs",
        "-m algo=avg data.path=few.csv hydra.sweep.dir=skipped",
    ),
}


def ended(folder: Path) -> str:
    lines = []
    for file in sorted(folder.rglob("job.json")):
        content = json.loads(file.read_text("utf-8"))
        del content["seconds"]
        lines.append(f"{file.relative_to(folder).as_posix()}: {json.dumps(content)}\n")
    return "".join(lines)


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_said_of_runs_and_sweeps(
    here: Here, golden_text: Callable[[str, str], None], name: str
) -> None:
    (here.folder / "good.csv").write_text(ROWS)
    (here.folder / "bad.csv").write_text(ROWS.replace("ben,3", "ben,9"))
    (here.folder / "few.csv").write_text(ROWS[:100].rpartition("\n")[0])
    text = ""
    for number, command in enumerate(COMMANDS[name]):
        place = () if "hydra" in command else (f"hydra.run.dir={number}",)
        done = here(*(CSV if "csv" in command else SIMULATED), *command.split(), *place)
        out = re.sub(r"(runs on .*?)\n\n.*\n(results )", r"\1 …\n\n\2", done.out, flags=re.DOTALL)
        text += f"$ {command}\nexit status {done.status}\n{out}{done.err}\n"
    golden_text(name, re.sub(r"\b\d+\.\d s\b", "TIME", text + ended(here.folder)))
