"""Write a package with an example, which you then replace by your own code.

  python -m srs_eval.new algo half_day         a memory model as equations, into srs-half-day
  python -m srs_eval.new algo half_day FOLDER  into FOLDER, which must be empty or not exist
  python -m srs_eval.new estimator half_day    a memory model with a fit of its own
  python -m srs_eval.new metric sharpness      a metric
  python -m srs_eval.new data diary            a source of review logs
  python -m srs_eval.new leaderboard NAME      a repository that checks and publishes submissions

Once it is installed (the command prints how), algo=half_day is an option of python -m srs_eval,
listed in --help, in completion and in algo=glob(*). Equations are a page of plain maths, which
srs_eval compiles, differentiates and fits; an estimator fits as in scikit-learn. The tests of
models look for mistakes that a leaderboard would reward. Existing files are never overwritten.
"""

from __future__ import annotations

import keyword
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Literal

from srs_eval.commands.cli import Argument, Command, Local, Options
from srs_eval.config.option_files import options as known_options
from srs_eval.text.console import say

LEADERBOARD = "leaderboard"
_LONGEST_NAME = 30
_WORDS_OF_YAML = {"null", "true", "false", "none", "yes", "no", "on", "off", "nan", "inf"}
# Paths and contents are templates. Files end in .txt, so that no tool treats them as code.
_TEMPLATES = Path(__file__).with_name("templates")
# Names that the files import.
_IMPORTED = {"ClassVar", "Fitted", "Maths", "ParameterSpace", "State", "Value", "Algorithm"}
_IMPORTED |= {"FloatArray", "IntArray", "Learned", "Literal", "Metric", "Model", "Predictions"}
_IMPORTED |= {"Reviews", "User"}


@dataclass(frozen=True, slots=True)
class Kind:
    """What a package may have: its noun, the group of its option, its module, and a command."""

    what: str
    group: str
    module: str
    command: str


KINDS = {
    "algo": Kind("memory model", "algo", "model", "-m algo=$name,fsrs6,hlr,avg"),
    "estimator": Kind("memory model", "algo", "model", "-m algo=$name,fsrs6,hlr,avg"),
    "metric": Kind("metric", "panel", "metric", "-m algo=fsrs6,avg panel=$name"),
    "data": Kind("source of review logs", "data", "source", "-m algo=fsrs6,avg data=$name"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class New(Options):
    """Options of the command."""

    kind: Argument[Literal["algo", "estimator", "metric", "data", "leaderboard"]]
    """what to write (algo, estimator, metric, data, leaderboard)"""
    name: Argument[str]
    """its name"""
    folder: Argument[Local[Path | None]] = None
    """and if you like a folder"""

    def problems(self) -> Iterable[str]:
        """Return what is wrong with the name and the folder."""
        if self.name is not None and self.kind in (*KINDS, LEADERBOARD):
            yield from name_problems(self.name, self.kind)
        if self.place.is_dir() and any(self.place.iterdir()):
            yield f"{self.place}: is not empty, and nothing is overwritten; name another"
        elif self.place.exists() and not self.place.is_dir():
            yield f"{self.place}: is a file, and nothing is overwritten; name a folder"

    @property
    def place(self) -> Path:
        """The folder of the files."""
        usual = self.name if self.kind == LEADERBOARD else _distribution(self.name or "")
        return Path(self.folder or usual or "")


def new(options: New) -> int:
    """Write the files and print the next steps."""
    folder, texts = options.place, files(options.name, options.kind)
    for place, text in texts.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    say("\n".join([f"{folder} now contains", *(f"  {place}" for place in texts)]))
    following = [f"cd {shlex.quote(str(folder))}"]
    if options.kind == LEADERBOARD:
        say("Replace @OWNER in .github/CODEOWNERS. Its first submission, and what is published:")
        following += [
            "python -m srs_eval.submit RUN out=leaderboard/NAME",
            "python -m srs_eval.submit check leaderboard",
            "python -m srs_eval.site leaderboard out=site",
        ]
    else:
        file = f"{_package(options.name)}/{KINDS[options.kind].module}.py"
        say(f"Write your code into {file}. It runs as it is:")
        following += ['python -m pip install -e ".[test]"', "python -m pytest"]
        following.append(_example(options.kind, options.name))
    say("\n".join(f"  {line}" for line in following))
    return 0


def files(name: str, kind: str = "algo") -> dict[str, str]:
    """Return the files of a package with something of this name: paths and contents."""
    words = {"name": name, "kind": kind, "version": version("srs-eval")}
    folders = [_TEMPLATES / kind]
    if kind != LEADERBOARD:
        folders.insert(0, _TEMPLATES / "package")
        words |= {
            "what": KINDS[kind].what,
            "group": KINDS[kind].group,
            "module": KINDS[kind].module,
            "command": _example(kind, name),
            "package": _package(name),
            "distribution": _distribution(name),
            "class_name": _class_name(name),
        }
    return {
        Template(path.relative_to(folder).with_suffix("").as_posix()).substitute(words): Template(
            path.read_text(encoding="utf-8")
        ).substitute(words)
        for folder in folders
        for path in sorted(folder.rglob("*.txt"))
    }


def _example(kind: str, name: str) -> str:
    return f"python -m srs_eval {Template(KINDS[kind].command).substitute(name=name)}"


def _package(name: str) -> str:
    return f"srs_{name}"


def _distribution(name: str) -> str:
    return _package(name).replace("_", "-")


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def name_problems(name: str, kind: str = "algo") -> list[str]:
    """Return why Python, pip, Hydra or GitHub would misinterpret a name; empty for a good one."""
    if kind == LEADERBOARD:
        is_good = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", name)
        expected = "at most 60 letters, digits, '-', '_' and '.', and a letter or digit first"
        return [] if is_good else [f"{name!r}: a name has {expected}"]
    group = KINDS[kind].group
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        near = re.sub(r"[^a-z0-9]+", "_", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())
        near = near.strip("_0123456789").removeprefix("srs_")
        meant = f"; how about {near}?" if re.fullmatch(r"[a-z]\w*", near) else ""
        expected = "lower-case letters, digits and single _, a letter first"
        return [f"{name!r}: a name is {expected}{meant}"]
    if len(name) > _LONGEST_NAME:
        return [f"{name}: a name has at most {_LONGEST_NAME} letters"]
    if keyword.iskeyword(name) or name in _WORDS_OF_YAML or _class_name(name) in _IMPORTED:
        return [f"{name}: is a word of Python, YAML or srs_eval; how about my_{name}?"]
    if name.startswith("srs_"):
        return [f"{name}: srs_ is added to the name; how about {name.removeprefix('srs_')}?"]
    if name in known_options(group):
        return [f"{name}: there is already an option {group}={name}; try my_{name}"]
    if find_spec(_package(name)) is not None:
        return [f"{name}: there is already a package {_package(name)}; take another name"]
    return []


command = Command("python -m srs_eval.new", __doc__, New, new)
