"""Command lines: dataclasses of options, by which arguments are parsed, checked and explained.

A command is a dataclass and a function of it. The annotation of a field has its type, and what
``--help`` says of it: ``Annotated[int, "the users"]`` is typed as ``users=3``.
"""

from __future__ import annotations

import inspect
import io
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn, get_args, get_origin, get_type_hints

from srs_eval.compute import stopping
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.text.addresses import has_secret, secret_problem
from srs_eval.text.console import complain, facts, say
from srs_eval.text.local_paths import uri_problem
from srs_eval.text.suggestion import suggestion

_FLAGS = ("--help", "--version")
_WIDTH = 76
# What is expected where pydantic says it in more words.
_EXPECTED = {
    "bool_parsing": "true or false",
    "float_parsing": "a number",
    "int_parsing": "a whole number",
}
_END = """Flags: --help, --version. Exit status: 0, 1 if something failed, 2 if the command was not
understood or what it names cannot be used."""


class Is(Enum):
    """What a field is, besides an option."""

    ARGUMENT = "typed without a key; a tuple takes all that follow"
    OVERRIDES = "all arguments that are nothing else, as options of python -m srs_eval"
    LOCAL = "a place that is written, which is no address"


@dataclass(frozen=True, slots=True)
class Key:
    """The key of an option that is not the name of its field.

    The keys ``data.KEY`` are all that begin with ``data.``; their field is a mapping.
    """

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Base class of the options of commands."""

    words: Sequence[str] = field(default=(), compare=False)  # What was typed

    def problems(self) -> Iterable[str]:
        """Return what is wrong with several options together.

        Options that are wrong by themselves are still text then, and missing ones are None.
        """
        return ()


@dataclass(frozen=True, slots=True)
class Command:
    """A command: how it is typed, the text of its help, its options, and what it does.

    `others` has the commands that are chosen by the first argument.
    """

    program: str
    page: str | None
    options: type[Options]
    run: Callable[[Any], int]
    others: Mapping[str, tuple[type[Options], Callable[[Any], int]]] = field(default_factory=dict)

    def __call__(self, words: Sequence[str]) -> int:
        """Run a command line, or print the help, and return the exit status."""
        if "--version" in words:
            say(f"srs_eval {version('srs-eval')}")
            return 0
        if {"--help", "-h"} & {*words}:
            say(self.help())
            return 0
        try:
            if words and words[0] in self.others:
                options, run = self.others[words[0]]
                return run(parse(options, words[1:]))
            return self.run(parse(self.options, words))
        except ConfigError as error:
            for problem in (*error.args, f"{self.program} --help lists the options"):
                complain(problem)
            return 2
        except SrsEvalError as error:
            complain(str(error))
        except OSError as error:
            complain(f"cannot read or write {error.filename}: {error.strerror or error}")
        except KeyboardInterrupt:
            return 130
        return 1

    def help(self) -> str:
        """Format the page of ``--help``."""
        parts = [inspect.cleandoc(self.page or "")]
        others = {f"Options of {name}:": options for name, (options, _) in self.others.items()}
        for title, options in {"Options, KEY=VALUE:": self.options, **others}.items():
            known = [each for each in _fields(options) if each.is_option]
            listed = {f"  {each.key}=": each.help for each in known}
            parts += [title, facts(listed)] if listed else []
        return "\n\n".join([*parts, _END])


def main(module: str) -> NoReturn:
    """Run the command of a module of srs_eval on `sys.argv`, and exit with its status.

    The import may take a second, in which Ctrl-C is heard already.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a user's name may not fit the terminal
    stopping.run(lambda: int(import_module(f"srs_eval.{module}").command(sys.argv[1:])))


def parse(options: type[Options], words: Sequence[str]) -> Any:
    """Return the options of a command line, or raise `ConfigError` with all that is wrong."""
    known = _fields(options)
    given, arguments, problems = _sorted(known, words)
    places = [each for each in known if Is.ARGUMENT in each.kinds]
    for each in places:
        if arguments:
            given[each.name] = [*arguments] if each.is_tuple else arguments[0]
            del arguments[: None if each.is_tuple else 1]
    if arguments or any(each.is_required and each.name not in given for each in places):
        listed, surplus = ", ".join(each.about for each in places), " ".join(arguments)
        expected = f"name {listed}" + f", not {surplus} as well" * bool(surplus)
        problems.append(expected if places else f"{surplus}: write KEY=VALUE")
    values: dict[str, Any] = {"words": words}
    for each in known:
        if given.get(each.name):
            values[each.name] = given[each.name]
            try:
                values[each.name] = each.value(given[each.name])
            except ConfigError as error:
                problems += error.args
        elif each.is_required:
            values[each.name] = None
            if each.is_option and each.name not in given:
                problems.append(f"{each.key}= is missing: {each.about}")
    made = options(**values)
    problems += made.problems()
    if problems:
        raise ConfigError(*problems)
    return made


def _sorted(
    known: Sequence[_Field], words: Sequence[str]
) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return texts by the names of fields, arguments without a key, and problems.

    The text of a field is None where a problem says what is wrong with it.
    """
    keys = {each.key: each.name for each in known if each.is_option}
    places = {each.name for each in known if Is.ARGUMENT in each.kinds}
    further = [each.name for each in known if Is.OVERRIDES in each.kinds]
    given: dict[str, Any] = {}
    arguments: list[str] = []
    problems: list[str] = []
    for word in words:
        key, sign, value = word.partition("=")
        group, _, name = key.partition(".")
        if has_secret(value):
            given.setdefault(keys.get(key, key), None)
            problems.append(secret_problem(key))
        elif word.startswith("-"):
            problems.append(f"{word}: no such flag{suggestion(word, _FLAGS, form='{}')}")
        elif sign and not value and not keys.keys().isdisjoint({key, f"{group}.KEY"}):
            given.setdefault(keys.get(key, key), None)
            problems.append(f"{key}=: a value is missing")
        elif sign and key in keys:
            given[keys[key]] = value
        elif sign and f"{group}.KEY" in keys:
            given.setdefault(keys[f"{group}.KEY"], {})[name] = value
        elif value and key in places:
            arguments.append(value)
        elif further and (sign or not places):
            given.setdefault(further[0], []).append(word)
        elif sign and not _path(word).exists():
            hint = suggestion(key, keys, form="{}=", otherwise=f"; there are {', '.join(keys)}")
            problems.append(f"{word}: no such key{hint}")
        else:
            arguments.append(word)
    return given, arguments, problems


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:  # ~ and the name of nobody
        return Path(text)


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of options, and what its annotation says."""

    name: str
    hint: Any
    key: str
    kinds: set[Is]
    about: str
    default: Any

    @property
    def is_option(self) -> bool:
        return not self.kinds & {Is.ARGUMENT, Is.OVERRIDES}

    @property
    def is_required(self) -> bool:
        return self.default is MISSING

    @property
    def is_tuple(self) -> bool:
        return get_origin(self.hint.__origin__) is tuple

    @property
    def help(self) -> str:
        """What it is, and its default, in lines."""
        default = "" if isinstance(self.default, bool) else self.default
        is_told = isinstance(default, str | float | int) and default != ""
        text = f"{self.about} ({default})" if is_told else self.about
        return textwrap.fill(text, _WIDTH, break_on_hyphens=False)

    def value(self, given: Any) -> Any:
        """Return a value of the type of the field, or raise `ConfigError`."""
        from pydantic import TypeAdapter, ValidationError  # not for --help

        form = f"{self.key}={{}}" if self.is_option else "{}"
        if Is.LOCAL in self.kinds and uri_problem(given):
            raise ConfigError(f"{form.format(given)}: {uri_problem(given)}")
        text = given
        if self.is_tuple and isinstance(given, str):
            given = [part.strip() for part in given.split(",") if part.strip()]
        if Path in (self.hint.__origin__, *get_args(self.hint.__origin__)):
            given = [*map(_path, given)] if self.is_tuple else _path(given)
        try:
            return TypeAdapter(self.hint, config={"allow_inf_nan": False}).validate_python(given)
        except ValidationError as error:
            (first, *_) = error.errors()
            expected = _EXPECTED.get(first["type"], first["msg"].removeprefix("Input should be "))
            expected = re.sub("^(greater|less)", r"a number \1", expected)
            meant = suggestion(str(text), re.findall("'([^']*)'", expected), form=form)
            expected = expected.replace("'", "")
            raise ConfigError(f"{form.format(text)}: expected {expected}{meant}") from error


def _fields(options: type[Options]) -> list[_Field]:
    hints = get_type_hints(options, include_extras=True)
    found = []
    for each in fields(options)[1:]:  # after what was typed
        said = hints[each.name].__metadata__
        about = "".join(part for part in said if isinstance(part, str))
        key = next((part.name for part in said if isinstance(part, Key)), each.name)
        kinds = {part for part in said if isinstance(part, Is)}
        has_factory = each.default_factory is not MISSING
        default = None if has_factory else each.default
        found.append(_Field(each.name, hints[each.name], key, kinds, about, default))
    return found
