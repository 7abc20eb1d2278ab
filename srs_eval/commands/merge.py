"""``python -m srs_eval.merge``: end runs whose users were shared among several commands."""

from __future__ import annotations

import os
from pathlib import Path

from omegaconf import OmegaConf

from srs_eval.commands import run
from srs_eval.commands.arguments import carry_out
from srs_eval.compute.shard import ALL, COMMAND_FILES, recorded_shards
from srs_eval.config.option_files import OWN
from srs_eval.errors import ConfigError
from srs_eval.place import Place
from srs_eval.results.files import reading

_PROGRAM = "python -m srs_eval.merge"
_FOLDER = "hydra.run.dir"
HELP = f"""End runs whose users were shared by shard=K/N: summarise, draw and log them.

  {_PROGRAM} RUN [RUN ...] [KEY=VALUE ...]

RUN is the hydra.run.dir that the shards were given, or the address that their parts= is; the
results are then put into hydra.run.dir=DIR. The run ends as one that was not shared: with the
same files, and one run in MLflow. Shards and users that are missing are named, and nothing is
written. KEY=VALUE are options of python -m srs_eval that change no number, such as figures=false
or tracking=none, in place of those the shards were given.
Exit status: as of python -m srs_eval."""


def command(words: list[str]) -> int:
    """Merge the runs that `words` name, and return the exit status."""
    return carry_out(
        lambda: max(_merged(place, _options(words)) for place in _runs(words)),
        words,
        program=_PROGRAM,
        help_page=HELP,
    )


def _runs(words: list[str]) -> list[Place]:
    runs = [Place.of(word) for word in words if "=" not in word]
    if not runs:
        raise ConfigError("which run: give the hydra.run.dir, or parts=, of its shards")
    for place in runs:
        if not recorded_shards(place):
            raise ConfigError(f"{place}: no shard has put its results there")
    return runs


def _options(words: list[str]) -> list[str]:
    given = [word.partition("=")[::2] for word in words if "=" in word]
    # the command is repeated where the shards were
    return [f"{k}={Path(v).expanduser().absolute() if k == _FOLDER else v}" for k, v in given]


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
        last.append(f"{_FOLDER}={place.local.resolve()}")
    keys = {word.partition("=")[0].lstrip("+") for word in last}
    kept = [word for word in given if word.partition("=")[0].lstrip("+") not in keys]
    before = Path.cwd()
    os.chdir(here if here.is_dir() else before)  # paths of the shards are relative to it
    try:
        return run.command([*kept, *last, *(f"--config-dir={path}" for path in own)])
    finally:
        os.chdir(before)
