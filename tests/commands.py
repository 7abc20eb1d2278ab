"""Running the command in tests: in this process for speed, in one of its own where it matters."""

import json
import os
import shlex
import signal
import subprocess
import sys
from functools import lru_cache
from unittest.mock import patch

from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from srs_eval.__main__ import main
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.runs import job
from srs_eval.runs.options import conf_folder

# Two simulated users with some hundred scored reviews each: half a second.
SMALL = (
    "data=synthetic",
    *("data.users=2", "data.size_scale=0.02", "data.max_reviews=3000"),
)
QUIET = ("tracking=none", "figures=false")

# A small log takes longer to simulate than to evaluate, and most tests evaluate the same two.
simulated = lru_cache(maxsize=32)(SyntheticUsers.read)


def run_here(words):
    """Run a command in this process, each log simulated once in all of them; return its status."""
    simulating = patch.object(SyntheticUsers, "read", lambda log, user: simulated(log, user))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    environ = dict(os.environ)
    try:
        with simulating, patch.object(sys, "argv", ["srs_eval", *words]):
            main()
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        job.claims.close()  # which the end of a process does
        HydraConfig.instance().cfg = None
        os.environ.clear()
        os.environ.update(environ)
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return 0


def _first(override):
    """Return the first value of a sweep, or the lower end of an interval."""
    value = override.value()
    return getattr(value, "start", None) or next(iter(override.sweep_string_iterator()))


def mistakes(words):
    """Return what Hydra says of the words of a command, the first values of a sweep alone."""
    parsed = OverridesParser.create().parse_overrides(list(words))
    first = [
        f"{each.get_key_element()}={_first(each)}" if each.is_sweep_override() else each.input_line
        for each in parsed
    ]
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        try:
            compose("config", overrides=first, return_hydra_config=True)
        except (HydraException, OmegaConfBaseException) as error:
            return [f"{shlex.join(words)}: {error}"]
    return []


def process(words, **options):
    """Run a program in a process of its own, and keep what it says."""
    return subprocess.run(words, capture_output=True, text=True, check=False, **options)


def write(folder, texts):
    """Write texts into files, which go by their paths below a folder."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def summary_of(folder):
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))


def outcome_of(folder):
    return json.loads((folder / "job.json").read_text(encoding="utf-8"))
