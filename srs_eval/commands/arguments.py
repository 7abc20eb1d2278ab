"""The commands beside `python -m srs_eval`: words understood, mistakes told, how each ends."""

from __future__ import annotations

import difflib
import io
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from srs_eval.compute import stopping
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.text.console import complain, facts, say
from srs_eval.text.local_paths import uri_problem

_FLAGS = ("--help", "--version")
_WIDTH = 76


class NotUnderstood(ConfigError):
    """A command line with mistakes, all of them told at once.

    Parameters
    ----------
    problems : sequence of str
        One line each, at least one.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problems))


@dataclass(frozen=True, slots=True)
class Words:
    """A command line, sorted.

    Attributes
    ----------
    paths : tuple of Path
        Words that are not of the form KEY=VALUE.
    options : mapping of str to str
        Values of the keys that were given; of a key given twice, the last one.
    problems : tuple of str
        Everything that is wrong with it.
    """

    paths: tuple[Path, ...]
    options: Mapping[str, str]
    problems: tuple[str, ...]


def exit_with(command: Callable[[list[str]], int]) -> None:
    """Run a command on the words that were typed, and exit with its status."""
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
    """Do what a command is for, or give help, and return the exit status.

    Parameters
    ----------
    do : callable
        Does it and returns the exit status; what it raises is told.
    program : str
        What is typed to run the command.
    advice : str
        What its ``--help`` does for someone who made a mistake.
    unwritten : str
        What cannot be written, if an operating system says that a file cannot be.

    Returns
    -------
    int
        0 or 1 as `do` has it, 1 if something failed, 2 if the command was not understood, 130
        if it was interrupted.
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
        for problem in error.problems if isinstance(error, NotUnderstood) else (str(error),):
            complain(problem)
        complain(f"{program} --help {advice}")
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
    """Tell paths from options, and find every word that is neither.

    Parameters
    ----------
    keys : mapping of str to str
        Keys there are, and what each is for; ``tags.KEY`` stands for every key that begins so.
    choices : mapping of str to sequence of str
        The only values that some of them can have.
    path_keys : sequence of str
        Further keys, whose values are paths like words without a key.

    Examples
    --------
    >>> found = sort_words(["runs", "use=1"], {"user": "whose"}, choices={})
    >>> found.problems
    ('use=1: no such key; did you mean user=?',)
    """
    paths: list[Path] = []
    options: dict[str, str] = {}
    problems: list[str] = []
    for word in words:
        key, sign, value = word.partition("=")
        path = Path(word).expanduser()
        if key in path_keys and value:
            paths.append(Path(value).expanduser())
        elif sign and (key in keys or f"{key.partition('.')[0]}.KEY" in keys):
            options[key] = value
            problems += _wrong_value(key, value, choices.get(key, ()))
            if key == "out" and uri_problem(value):
                problems.append(f"{word}: {uri_problem(value)}")
        elif word.startswith("-"):
            problems.append(f"{word}: no such flag{_meant(word, _FLAGS)}")
        elif sign and not path.exists():
            meant = _meant(key, list(keys), "=") or f"; there are {', '.join(keys)}"
            problems.append(f"{word}: no such key{meant}")
        else:
            paths.append(path)
    return Words(tuple(paths), options, tuple(problems))


def explained(keys: Mapping[str, str]) -> str:
    """Lay out for a help page what keys are for."""
    return facts({f"  {key}=": textwrap.fill(text, _WIDTH) for key, text in keys.items()})


def _wrong_value(key: str, value: str, allowed: Sequence[str]) -> Iterator[str]:
    if not value:
        yield f"{key}=: a value is missing"
    elif allowed and value not in allowed:
        first = f"{', '.join(allowed[:-1])} or " if len(allowed) > 1 else ""
        close = difflib.get_close_matches(value, allowed, 1)
        meant = f"did you mean {key}={close[0]}?" if close else f"write {key}={first}{allowed[-1]}"
        yield f"{key}={value}: {meant}"


def _meant(word: str, known: Sequence[str], ending: str = "") -> str:
    close = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {close[0]}{ending}?" if close else ""
