"""Command lines that nobody should write."""

from __future__ import annotations

from pathlib import Path
from random import Random

from run_folders import judged_command
from verdicts import Verdict

_KEYS = (
    "algo", "data", "protocol", "panel", "compute", "tracking", "seed", "figures", "resume", "name",
    "curves_per_user", "data.users", "data.seed", "data.size_scale", "data.max_reviews",
    "compute.workers", "protocol.folds", "baseline", "data.path", "data.columns.card",
    "algo.epochs", "+new", "~seed", "hydra.job.name", "data.columns.day",
)  # fmt: skip
_VALUES = (
    "", "null", "true", "1.0", "1.5", "-1", "0", "1e308", "nan", "[a]", "[]", "{a: 1}", "'",
    "${seed}", "${nope}", "${oc.env:NOPE}", "1-999999999", "\x1b[31m", "\u202e", "a" * 10_000,
    "../../x", "2",
    "9" * 40, "a,b", "choice(1,2)", "range(1,3)", "x=y", "[[[[", "é", "$(ls)", "%n", "~", "*",
)  # fmt: skip
_FLAGS = ("-m", "--cfg=job", "--resolve", "--help", "-x", "--", "algo=?")
_GROUPS = {
    "algo": ("avg", "hlr", "fsrs6", "nope", "AVG", "../algo/avg", "avg@b"),
    "data": ("synthetic", "csv", "anki", "revlogs_10k", "nope"),
}
_SMALL = ("data.size_scale=0.02", "panel=quick", "curves_per_user=0")


def command_line(random: Random, folder: Path) -> Verdict:
    """Run a command line made of odd words, of which few fit together."""
    words = [f"algo={random.choice(('avg', 'avg', *_GROUPS['algo']))}"]
    for _ in range(random.randint(1, 3)):
        key = random.choice(_KEYS)
        value = random.choice((*_GROUPS.get(key, ()), *_VALUES))
        words.append(key if key.startswith("~") else f"{key}={value}")
    if random.random() < 0.15:
        words.append(random.choice(_FLAGS))
    fixed = ["tracking=none", "figures=false", f"hydra.run.dir={folder / 'out'}"]
    fixed.append(f"hydra.sweep.dir={folder / 'out'}")
    given = {word.partition("=")[0] for word in words}
    rest = [w for w in (*fixed, "data.users=1", *_SMALL) if w.partition("=")[0] not in given]
    return judged_command("run", [*words, *rest], clear=(0, 1, 2))
