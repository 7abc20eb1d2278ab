"""Command lines: dataclasses of options, by which arguments are parsed, checked and explained.

A command is a dataclass and a function of it. A field ``users: int = 3`` is typed as ``users=3``;
the string below it is what ``--help`` says of it.
"""

from __future__ import annotations

import ast
import gc
import inspect
import io
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from importlib import import_module
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar, get_args, get_origin, get_type_hints

from srs_eval.compute import stopping
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.text.addresses import has_secret, secret_problem
from srs_eval.text.console import complain, facts, say
from srs_eval.text.expected import expected
from srs_eval.text.local_paths import uri_problem
from srs_eval.text.suggestion import suggestion

_FLAGS = ("--help", "--version")
_WIDTH = 76
_END = """Flags: --help, --version. Exit status: 0, 1 if something failed, 2 if the command was not
understood or what it names cannot be used."""


T = TypeVar("T")
# Typed without a key; a tuple takes all arguments that follow.
Argument = Annotated[T, "argument"]
# A place that is written, which is no address.
Local = Annotated[T, "local"]


@dataclass(frozen=True, slots=True)
class Key:
    """The key of an option that is not the name of its field.

    The keys ``data.KEY`` are all that begin with ``data.``; their field is a mapping.
    """

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Base class of the options of commands.

    A field ``overrides`` has all arguments that are nothing else: options of python -m srs_eval.
    """

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
            return refused(self.program, error.args)
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


def refused(program: str, problems: Iterable[str]) -> int:
    """Print why a command line is refused, and return the exit status."""
    for problem in (*problems, f"{program} --help lists the options"):
        complain(problem)
    return 2


def main(module: str) -> NoReturn:
    """Run the command of a module of srs_eval on `sys.argv`, and exit with its status.

    The import may take a second, in which Ctrl-C is heard already.
    """
    # Imports make some hundred thousand objects that stay: looking through them for garbage, again
    # and again, would be a tenth of a short run.
    gc.set_threshold(20_000, 10, 10)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a user's name may not fit the terminal
    stopping.run(lambda: int(import_module(f"srs_eval.{module}").command(sys.argv[1:])))


def parse(options: type[Options], words: Sequence[str]) -> Any:
    """Return the options of a command line, or raise `ConfigError` with all that is wrong."""
    known = _fields(options)
    given, arguments, problems = _sorted(known, words)
    places = [each for each in known if each.is_argument]
    for each in places:
        if arguments and each.is_tuple:
            given[each.name] = [*(given.get(each.name) or ()), *arguments]
            arguments.clear()
        elif arguments and each.name not in given:
            given[each.name] = arguments.pop(0)
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
            if not (each.is_argument or each.name in given):
                problems.append(f"{each.key}= is missing: {each.about}")
    made = options(**values)
    problems += [*_overwriting(known, values), *made.problems()]
    if problems:
        raise ConfigError(*problems)
    return made


def _overwriting(known: Sequence[_Field], values: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with files to write that are the files to read."""
    read = [values.get(each.name) for each in known if each.is_argument]
    files = [path for path in read if isinstance(path, Path)]
    for each in known:
        path = values.get(each.name) if each.is_local and each.is_option else None
        if isinstance(path, Path) and path.is_file() and any(map(path.samefile, files)):
            yield f"{each.key}={path}: is the file that is read; name another"


def _sorted(
    known: Sequence[_Field], words: Sequence[str]
) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return texts by the names of fields, arguments without a key, and problems.

    The text of a field is None where a problem says what is wrong with it.
    """
    keys = {each.key: each.name for each in known if each.is_option}
    places = {each.name: each.is_tuple for each in known if each.is_argument}
    has_overrides = any(each.name == "overrides" for each in known)
    given: dict[str, Any] = {}
    arguments: list[str] = []
    problems: list[str] = []
    for word in words:
        key, sign, value = word.partition("=")
        group, _, name = key.partition(".")
        many = f"{group}.KEY" if name else ""
        if has_secret(value):
            given.setdefault(keys.get(key, key), None)
            problems.append(secret_problem(key))
        elif word.startswith("-"):
            problems.append(f"{word}: no such flag{suggestion(word, _FLAGS, form='{}')}")
        elif not word:
            problems.append("an argument is empty")
        elif sign and not value and (key in places or not keys.keys().isdisjoint({key, many})):
            given.setdefault(keys.get(key, key), None)
            problems.append(f"{key}=: a value is missing")
        elif sign and key in keys:
            given[keys[key]] = value
        elif sign and many in keys:
            given.setdefault(keys[many], {})[name] = value
        elif value and places.get(key):
            given[key] = [*(given.get(key) or ()), value]
        elif value and key in places:
            given[key] = value
        elif has_overrides and (not places or (sign and not _path(word).exists())):
            given.setdefault("overrides", []).append(word)
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
    """A field of options: its name, its type with all that is said of it, help and default."""

    name: str
    hint: Any
    about: str
    default: Any

    @property
    def key(self) -> str:
        said = self.hint.__metadata__
        return next((each.name for each in said if isinstance(each, Key)), self.name)

    @property
    def is_argument(self) -> bool:
        return "argument" in self.hint.__metadata__

    @property
    def is_option(self) -> bool:
        return not self.is_argument and self.name != "overrides"

    @property
    def is_local(self) -> bool:
        return "local" in self.hint.__metadata__

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

        form = "{}" if self.is_argument else f"{self.key}={{}}"
        if self.is_local and uri_problem(given):
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
            meant = suggestion(str(text), re.findall("'([^']*)'", first["msg"]), form=form)
            told = f"{form.format(text)}: expected {expected(first)}{meant}"
            raise ConfigError(told) from error


def _fields(options: type[Options]) -> list[_Field]:
    """Return the fields of options; their help is the string below each."""
    abouts = {}
    for part in options.__mro__[-2::-1]:  # a class has the last word on its own fields
        (tree,) = ast.parse(inspect.getsource(part)).body
        for above, below in pairwise(getattr(tree, "body", ())):
            if isinstance(above, ast.AnnAssign) and isinstance(below, ast.Expr):
                abouts[ast.unparse(above.target)] = " ".join(ast.literal_eval(below.value).split())
    hints, found = get_type_hints(options, include_extras=True), []
    for each in fields(options)[1:]:  # after what was typed
        about = abouts.get(each.name, "")
        default = each.default if each.default_factory is MISSING else None
        found.append(_Field(each.name, Annotated[hints[each.name], about], about, default))
    return found
