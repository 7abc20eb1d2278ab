"""Arguments, error messages and exit status of the commands other than `python -m srs_eval`."""

from __future__ import annotations

import io
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from srs_eval.compute import stopping
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.text.addresses import has_secret, secret_problem
from srs_eval.text.console import complain, facts, say
from srs_eval.text.local_paths import uri_problem
from srs_eval.text.suggestion import suggestion

_FLAGS = ("--help", "--version")
_WIDTH = 76


@dataclass(frozen=True, slots=True)
class Words:
    """A parsed command line."""

    paths: tuple[Path, ...]  # Arguments that are not of the form KEY=VALUE
    options: Mapping[str, str]  # Values by key; of a repeated key, the last value
    problems: tuple[str, ...] = ()  # All errors in the command line

    def path(self, key: str) -> Path | None:
        """Return the value of a key as a path; None if it was not given."""
        return Path(self.options[key]).expanduser() if self.options.get(key) else None

    def usable(self, *further: str) -> Words:
        """Return the command line, or raise `ConfigError` with its errors and further ones."""
        if self.problems or further:
            raise ConfigError(*self.problems, *further)
        return self


def exit_with(command: Callable[[list[str]], int]) -> None:
    """Run a command on `sys.argv`, and exit with its status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a user's name may not fit the terminal
    stopping.run(lambda: command(sys.argv[1:]))


def carry_out(
    do: Callable[[], int],
    words: Sequence[str],
    *,
    program: str,
    help_page: str,
    advice: str = "lists the options",
    unwritten: str = "",
) -> int:
    """Run a command or print its help, and return the exit status.

    `do` runs the command and returns its exit status, 0 or 1; its exceptions are printed, with
    status 1, or 2 if the command was not understood. `program` is how the command is typed, and
    `advice` what its ``--help`` shows. `unwritten` is what the command writes, for errors of the
    operating system.
    """
    if "--version" in words:
        say(f"srs_eval {version('srs-eval')}")
        return 0
    if "--help" in words or "-h" in words:
        say(help_page)
        return 0
    try:
        return do()
    except ConfigError as error:
        for problem in (*error.args, f"{program} --help {advice}"):
            complain(problem)
        return 2
    except SrsEvalError as error:
        complain(str(error))
        return 1
    except OSError as error:
        what = f"cannot write {unwritten}: " if unwritten else ""
        complain(f"{what}{error.strerror or error}: {error.filename}")
        return 1
    except KeyboardInterrupt:
        return 130


def sort_words(
    words: Sequence[str],
    keys: Mapping[str, str],
    *,
    choices: Mapping[str, Sequence[str]],
    path_keys: Sequence[str] = (),
) -> Words:
    """Parse a command line into paths and options, and collect its errors.

    `keys` has the description of each key, where ``tags.KEY`` stands for every key with that
    prefix, `choices` the allowed values of some keys. Values of `path_keys` are paths, like
    arguments without a key.

    Examples
    --------
    >>> found = sort_words(["runs", "use=1"], {"user": "the user"}, choices={})
    >>> found.problems
    ('use=1: no such key; did you mean user=?',)
    """
    paths: list[Path] = []
    options: dict[str, str] = {}
    problems: list[str] = []
    for word in words:
        key, sign, value = word.partition("=")
        path = Path(word).expanduser()
        if has_secret(value):
            problems.append(secret_problem(key))
        elif key in path_keys and value:
            paths.append(Path(value).expanduser())
        elif sign and (key in keys or f"{key.partition('.')[0]}.KEY" in keys):
            options[key] = value
            problems += _wrong_value(key, value, choices.get(key, ()))
            if key == "out" and uri_problem(value):
                problems.append(f"{word}: {uri_problem(value)}")
        elif word.startswith("-"):
            problems.append(f"{word}: no such flag{suggestion(word, _FLAGS, form='{}')}")
        elif sign and not path.exists():
            known = f"; there are {', '.join(keys)}"
            problems.append(
                f"{word}: no such key{suggestion(key, keys, form='{}=', otherwise=known)}"
            )
        else:
            paths.append(path)
    return Words(tuple(paths), options, tuple(problems))


def about_one(
    words: Sequence[str],
    keys: Mapping[str, str],
    noun: str,
    *,
    choices: Mapping[str, Sequence[str]] | None = None,
) -> Words:
    """Parse a command line that names one file or folder, a `noun`."""
    found = sort_words(words, keys, choices=choices or {})
    if not found.problems and len(found.paths) != 1:
        found.usable(f"name one {noun}" + f", not {len(found.paths)}" * bool(found.paths))
    return found.usable()


def explained(keys: Mapping[str, str]) -> str:
    """Format the descriptions of keys for a help page."""
    return facts({f"  {key}=": textwrap.fill(text, _WIDTH) for key, text in keys.items()})


def _wrong_value(key: str, value: str, allowed: Sequence[str]) -> Iterator[str]:
    if not value:
        yield f"{key}=: a value is missing"
    elif allowed and value not in allowed:
        listed = " or ".join([", ".join(allowed[:-1]), allowed[-1]][len(allowed) == 1 :])
        meant = suggestion(
            value, allowed, form=f"{key}={{}}", otherwise=f"; write {key}={listed}"
        ).removeprefix("; ")
        yield f"{key}={value}: {meant}"
