"""`python -m srs_eval.new KIND NAME [FOLDER]`: write a package, or the files of a leaderboard."""

from __future__ import annotations

import keyword
import re
import shlex
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from string import Template

from srs_eval.commands.arguments import carry_out
from srs_eval.config.option_files import options
from srs_eval.errors import ConfigError
from srs_eval.text.console import say
from srs_eval.text.local_paths import uri_problem

PROGRAM = "python -m srs_eval.new"
_LONGEST_NAME = 30
_WORDS_OF_YAML = {"null", "true", "false", "none", "yes", "no", "on", "off", "nan", "inf"}
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
# Template files end in .txt, so that no tool treats them as code. Keys are templates too.
_FILES = {
    "pyproject.toml": "pyproject.toml.txt",
    "README.md": "README.md.txt",
    ".gitignore": "gitignore.txt",
    "$package/__init__.py": "init.py.txt",
    "$package/$module.py": "$kind/$module.py.txt",
    "$package/conf/$group/$name.yaml": "$kind/option.yaml.txt",
    "tests/test_$name.py": "$kind/test.py.txt",
}
LEADERBOARD = "leaderboard"
_FILES_OF_LEADERBOARD = {
    "README.md": "README.md.txt",
    "requirements.txt": "requirements.txt.txt",
    ".gitignore": "gitignore.txt",
    ".github/CODEOWNERS": "codeowners.txt",
    ".github/workflows/check.yml": "check.yml.txt",
    ".github/workflows/publish.yml": "publish.yml.txt",
    "leaderboard/accepted.yaml": "accepted.yaml.txt",
}
_HELP = f"""Write a package with an example, which you then replace by your own code.

  {PROGRAM} algo half_day            a memory model as equations, into the folder srs-half-day
  {PROGRAM} algo half_day FOLDER     into FOLDER, which must be empty or not exist
  {PROGRAM} estimator half_day       a memory model with a fit of its own, as in scikit-learn
  {PROGRAM} metric sharpness         a metric
  {PROGRAM} data diary               a source of review logs
  {PROGRAM} leaderboard NAME         a repository that checks and publishes submissions

Once it is installed (the command prints how), algo=half_day is an option of python -m srs_eval,
listed in --help, in completion and in algo=glob(*). Equations are a page of plain maths, which
srs_eval compiles, differentiates and fits; the tests of models look for mistakes that a
leaderboard would reward. Existing files are never overwritten.

Exit status: 0 if the files were written, 1 if they could not be, 2 if the command was not
understood."""


def command(words: list[str]) -> int:
    """Run the command line `words` and return the exit status."""
    return carry_out(
        lambda: _write(words),
        words,
        program=PROGRAM,
        help_page=_HELP,
        advice="shows how it is used",
        unwritten="the leaderboard" if words[:1] == [LEADERBOARD] else "the package",
    )


def _write(words: list[str]) -> int:
    """Write the files and print the next steps."""
    kind, name, folder = _asked(words)
    texts = leaderboard_files(name) if kind == LEADERBOARD else package_files(name, kind)
    if folder.is_dir() and any(folder.iterdir()):
        raise ConfigError(f"{folder}: is not empty, and nothing is overwritten; name another")
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: is a file, and nothing is overwritten; name a folder")
    for place, text in texts.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    say("\n".join([f"{folder} now contains", *(f"  {place}" for place in texts)]))
    say(_next_of_leaderboard(folder) if kind == LEADERBOARD else _next(kind, name, folder))
    return 0


def leaderboard_files(name: str) -> dict[str, str]:
    """Return the files of a repository with a leaderboard: paths and contents."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", name):
        raise ConfigError(
            f"{name!r}: a name has at most 60 letters, digits, '-', '_' and '.', and a letter or "
            "digit first"
        )
    words = {"name": name, "version": version("srs-eval")}
    return {
        place: Template((_TEMPLATES / LEADERBOARD / file).read_text(encoding="utf-8")).substitute(
            words
        )
        for place, file in _FILES_OF_LEADERBOARD.items()
    }


def package_files(name: str, kind: str = "algo") -> dict[str, str]:
    """Return the files of a package with something of this name: paths and contents."""
    _expect_good_name(name, KINDS[kind].group)
    words = {
        "name": name,
        "kind": kind,
        "what": KINDS[kind].what,
        "group": KINDS[kind].group,
        "module": KINDS[kind].module,
        "command": _command(kind, name),
        "package": _package(name),
        "distribution": _distribution(name),
        "class_name": _class_name(name),
    }
    return {
        Template(place).substitute(words): Template(
            (_TEMPLATES / Template(file).substitute(words)).read_text(encoding="utf-8")
        ).substitute(words)
        for place, file in _FILES.items()
    }


def _command(kind: str, name: str) -> str:
    return f"python -m srs_eval {Template(KINDS[kind].command).substitute(name=name)}"


def _package(name: str) -> str:
    return f"srs_{name}"


def _distribution(name: str) -> str:
    return _package(name).replace("_", "-")


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _asked(words: list[str]) -> tuple[str, str, Path]:
    flags = [word for word in words if word.startswith("-")]
    if flags:
        raise ConfigError(f"{flags[0]}: no such flag")
    kinds = (*KINDS, LEADERBOARD)
    if not words or words[0] not in kinds:
        wrong = f"{words[0]}: cannot be written" if words else "what is to be written is missing"
        raise ConfigError(f"{wrong}; there are {', '.join(kinds)}, as in {PROGRAM} algo half_day")
    if len(words) not in (2, 3):
        raise ConfigError(f"write {PROGRAM} {words[0]} NAME, and if you like a FOLDER")
    if len(words) == 3 and uri_problem(words[2]):
        raise ConfigError(f"{words[2]}: {uri_problem(words[2])}")
    default = words[1] if words[0] == LEADERBOARD else _distribution(words[1])
    folder = words[2] if len(words) == 3 else default
    return words[0], words[1], Path(folder).expanduser()


def _expect_good_name(name: str, group: str) -> None:
    """Raise an error for a name that Python, pip or Hydra would misinterpret."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        near = re.sub(r"[^a-z0-9]+", "_", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())
        near = near.strip("_0123456789").removeprefix("srs_")
        meant = f"; how about {near}?" if re.fullmatch(r"[a-z]\w*", near) else ""
        raise ConfigError(
            f"{name!r}: a name is lower-case letters, digits and single _, a letter first{meant}"
        )
    if len(name) > _LONGEST_NAME:
        raise ConfigError(f"{name}: a name has at most {_LONGEST_NAME} letters")
    if keyword.iskeyword(name) or name in _WORDS_OF_YAML or _class_name(name) in _IMPORTED:
        raise ConfigError(f"{name}: is a word of Python, YAML or srs_eval; how about my_{name}?")
    if name.startswith("srs_"):
        raise ConfigError(
            f"{name}: srs_ is added to the name; how about {name.removeprefix('srs_')}?"
        )
    if name in options(group):
        raise ConfigError(f"{name}: there is already an option {group}={name}; try my_{name}")
    if find_spec(_package(name)) is not None:
        raise ConfigError(f"{name}: there is already a package {_package(name)}; take another name")


def _next_of_leaderboard(folder: Path) -> str:
    return "\n".join(
        [
            "Replace @OWNER in .github/CODEOWNERS. Its first submission, and what is published:",
            f"  cd {shlex.quote(str(folder))}",
            "  python -m srs_eval.submit RUN out=leaderboard/NAME",
            "  python -m srs_eval.submit check leaderboard",
            "  python -m srs_eval.site leaderboard out=site",
        ]
    )


def _next(kind: str, name: str, folder: Path) -> str:
    commands = [
        f"cd {shlex.quote(str(folder))}",
        'python -m pip install -e ".[test]"',
        "python -m pytest",
        _command(kind, name),
    ]
    return "\n".join(
        [
            f"Write your code into {_package(name)}/{KINDS[kind].module}.py. It runs as it is:",
            *(f"  {line}" for line in commands),
        ]
    )
