"""Words on the terminal: those of the small commands, what they read, then KEY=VALUE."""

from __future__ import annotations

import atexit
import gc
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from srs_eval.errors import ConfigError, SrsEvalError

T = TypeVar("T")
REQUIRED: Any = "???"  # The default of what has to be typed, as OmegaConf has it


def say(text: str) -> None:
    """Print a text at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    """Print a text on standard error."""
    sys.stderr.write(f"srs_eval: {text.rstrip()}\n")
    sys.stderr.flush()


def spare_garbage() -> None:
    """Look for garbage seldom, and not at the end: nearly all objects of a command are modules."""
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)


def status(options: type[T], run: Callable[[T], int | None], words: Sequence[str]) -> int:
    """Run a command, and return its exit status: 0, 1 if something failed, 130 after Ctrl-C.

    `options` is a dataclass, whose docstring is what ``--help`` prints.
    """
    if {"-h", "--help"} & {*words}:
        say(inspect.cleandoc(options.__doc__ or ""))
        return 0
    spare_garbage()
    try:
        return run(read(options, words)) or 0
    except (SrsEvalError, OSError) as error:
        complain(str(error))
    except KeyboardInterrupt:
        return 130
    return 1


def read(options: type[T], words: Sequence[str]) -> T:
    """Return the options of a command line; raise `ConfigError` if there are no such.

    The first field takes the words without a key. Texts and paths are what was typed, all other
    values are YAML. Of a group in a field ``choices``, ``data=NAME`` goes there, and
    ``data.KEY=VALUE`` into the field of that name.
    """
    from omegaconf import OmegaConf  # not for --help
    from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException
    from yaml import YAMLError

    from srs_eval.places import has_secret

    hints = get_type_hints(options)
    first, groups = next(iter(hints)), getattr(options(), "choices", ())
    alone: list[str] = []
    parts: list[Any] = []
    for word in words:
        key, sign, text = word.partition("=")
        if has_secret(text):
            raise ConfigError(f"{key}: leave the password to the environment (PGPASSWORD, …)")
        if not sign or Path(word).exists():
            alone.append(word)
        elif hints.get(key) in (str, Path, str | None, Path | None):
            parts.append({key: text})
        elif key in groups:
            parts.append({"choices": {key: text}})
        else:
            try:
                parts.append(OmegaConf.from_dotlist([word]))
            except YAMLError:  # a text such as *Spanish*
                parts.append(OmegaConf.from_dotlist([f"{key}={json.dumps(text)}"]))
    if alone:
        parts.append({first: alone if "list" in str(hints[first]) else " ".join(alone)})
    try:
        chosen: Any = OmegaConf.to_object(OmegaConf.merge(options, *parts))
    except MissingMandatoryValue as error:
        raise ConfigError(f"{error.full_key} is missing; --help has examples") from error
    except OmegaConfBaseException as error:
        line = str(error).partition("\n")[0]
        raise ConfigError(f"{error.full_key}: {line}" if error.full_key else line) from error
    out, source = getattr(chosen, "out", None), getattr(chosen, first)
    if out and Path(out).is_file() and Path(out).samefile(source):
        raise ConfigError(f"out={out}: is the file that is read; name another")
    return chosen  # type: ignore[no-any-return]


def dotted(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Go through the values of nested options by their keys.

    >>> dict(dotted({"path": "a", "columns": {"user": "name"}}, "data."))
    {'data.path': 'a', 'data.columns.user': 'name'}
    """
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from dotted(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
