"""End runs whose users were shared by shard=K/N: summarise, draw and log them.

  python -m srs_eval.merge RUN [RUN ...] [KEY=VALUE ...]

RUN is the hydra.run.dir that the shards were given, or the address that their parts= is; the
results are then put into hydra.run.dir=DIR. The run ends as one that was not shared: with the
same files, and one run in MLflow. Shards and users that are missing are named, and nothing is
written. KEY=VALUE are options of python -m srs_eval that change no number, such as figures=false
or tracking=none, in place of those the shards were given.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from omegaconf import OmegaConf

from srs_eval.commands import run
from srs_eval.commands.cli import Argument, Command, Options
from srs_eval.compute.shard import ALL, COMMAND_FILES, recorded_shards
from srs_eval.config.option_files import OWN
from srs_eval.place import Place
from srs_eval.results.files import reading

_FOLDER = "hydra.run.dir"


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge(Options):
    """Options of the command."""

    runs: Argument[tuple[str, ...]]
    """the hydra.run.dir, or the parts=, of the shards of a run"""
    overrides: tuple[str, ...] = ()

    def problems(self) -> Iterable[str]:
        """Return the runs that no shard has begun."""
        for place in map(Place.of, self.runs or ()):
            if not recorded_shards(place):
                yield f"{place}: no shard has put its results there"


def merge(options: Merge) -> int:
    """Merge the runs, and return the exit status."""
    given = [word.partition("=")[::2] for word in options.overrides]
    # the command is repeated where the shards were
    words = [f"{k}={Path(v).expanduser().absolute() if k == _FOLDER else v}" for k, v in given]
    return max(_merged(place, words) for place in map(Place.of, options.runs))


def _merged(place: Place, options: list[str]) -> int:
    """Repeat the command of a shard, for all of them and where it was given."""
    recorded = recorded_shards(place)[0]
    with reading(recorded):
        texts = [(recorded / name).read().decode() for name in COMMAND_FILES]
        written, words = map(OmegaConf.create, texts)
        hydra, given = written.hydra, list(words)
        own = [s.path for s in hydra.runtime.config_sources if s.provider == OWN]
        given += hydra.overrides.hydra
        here = Path(hydra.runtime.cwd)
    last = [*options, "resume=true", f"shard={ALL}"]
    if not place.is_remote:
        quoted = str(place.local.resolve()).replace("'", "\\'")
        last.append(f"{_FOLDER}='{quoted}'")
    keys = {word.partition("=")[0].lstrip("+") for word in last}
    kept = [word for word in given if word.partition("=")[0].lstrip("+") not in keys]
    before = Path.cwd()
    os.chdir(here if here.is_dir() else before)  # paths of the shards are relative to it
    try:
        return run.command([*kept, *last, *(f"--config-dir={path}" for path in own)])
    finally:
        os.chdir(before)


command = Command("python -m srs_eval.merge", __doc__, Merge, merge)
