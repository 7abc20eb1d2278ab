"""What a run in Python is made of: options by name, and objects of one's own."""

from __future__ import annotations

import hashlib
import inspect
import pickle
import sys
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import cloudpickle

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.data.reviews import Source
from srs_eval.data.table import ReviewTable, is_table, to_pandas
from srs_eval.errors import ConfigError
from srs_eval.runs.config import Setup, build, composed, named_option, resolved, wrong_values

_ANKI = (".colpkg", ".apkg", ".anki2", ".anki21", ".anki21b")
_PLAIN = (int, float, str, bool, type(None))
# What an object of a group needs to have.
_NEEDED = {
    "algo": ("fit",),
    "data": ("users", "read"),
    "protocol": ("name", "folds"),
    "panel": ("names", "score"),
}


AlgorithmLike = str | Algorithm
# Any: a table of any library that has `__arrow_c_stream__`, such as a pandas or polars frame.
DataLike = str | Path | Source | Any


def algorithm(name: str, **arguments: Any) -> Algorithm:
    """Build an algorithm by its name on the command line.

    Parameters
    ----------
    name : str
        Such as ``fsrs6``.
    **arguments
        Arguments of the option, such as ``fit="reference"``.

    Raises
    ------
    ConfigError
        If there is no such algorithm or argument.

    Examples
    --------
    >>> algorithm("constant", p=0.8)
    Constant(p=0.8)
    """
    built: Algorithm = named_option("algo", name, arguments)
    return built


def source(data: DataLike, **arguments: Any) -> Source:
    """Build a source of review logs.

    Parameters
    ----------
    data : str, Path, table or Source
        A path (an Anki file, a CSV or parquet file, a folder or pattern of these, or a folder of
        anki-revlogs-10k), the name of an option such as ``synthetic``, or a table in memory.
    **arguments
        Arguments of the option, such as ``users=3``; columns of a table by their nouns, such as
        ``card="item"``.

    Raises
    ------
    ConfigError
        If there is no such option or argument, saying what there is.
    ReviewLogError
        If a table in memory lacks a column.

    Examples
    --------
    >>> list(source("synthetic", users=2).users())
    [1, 2]
    """
    return setup_of({"data": data}, arguments).source


def setup_of(
    inputs: Mapping[str, Any],
    arguments: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
    **objects: Any,
) -> Setup:
    """Build everything that is named, and check everything that is an object.

    `inputs` has names and objects by group, None for the option that the command takes by default;
    `arguments` are those of the algorithm and of the data; `settings` are in no group.
    """
    data, names, own = inputs["data"], {"tracking": "none"}, dict[str, Any]()
    for group, each in inputs.items():
        name = option_of_data(each) if group == "data" else each
        if isinstance(name, str):
            names[group] = name
        elif each is not None or group in ("algo", "data"):
            own[group] = _checked(group, each)
    arguments = dict(arguments)
    if is_table(data):
        frame, arguments["path"] = to_pandas(data), "frame"
        if "user" in {*frame.columns, *frame.index.names}:
            arguments.setdefault("user", "user")
    elif names.get("data", data) != data:
        arguments["path"] = str(data)
    values = {key: value for key, value in (settings or {}).items() if value is not None}
    cfg, choices = composed(names, values | _by_key(names, arguments))
    if is_table(data):  # read by the options that files are read by
        table = resolved(cfg)["data"]
        columns = {k: v for k, v in table.pop("columns").items() if k != "_target_"}
        table = {key: value for key, value in table.items() if key not in ("_target_", "path")}
        objects["data"] = ReviewTable(frame, columns=columns, **table)
    contents = {group: _content(each) for group, each in own.items()}
    choices |= {group: type(each).__name__ for group, each in own.items()}
    chosen = {key: value for key, value in arguments.items() if key in cfg.algo}
    words = [f"{k}={v}" for k, v in contents.get("algo", chosen).items() if k != "_target_"]
    setup = build(cfg, choices, words, {"tracking": None, **own, **objects})
    return replace(
        setup,
        content={**setup.content, **contents},
        label=values.get("name") or setup.label,
        # logs of a source are compared one by one
        objects_hash=_digest([own[group] for group in sorted({*own} - {"data"})]),
    )


def option_of_data(data: object) -> str | None:
    """Return the name of the option that reads some data; None for a source that is an object."""
    if is_table(data):
        return "csv"
    if not isinstance(data, str | Path):
        return None
    path = Path(data).expanduser()
    if path.suffix.lower() in _ANKI:
        return "anki"
    if (path / "revlogs").is_dir() or any(path.glob("user_id=*")):
        return "revlogs_10k"
    if path.is_dir() and any("=" in each.name for each in path.iterdir()):
        return "partitioned"
    is_name = isinstance(data, str) and data.isidentifier() and not path.exists()
    return str(data) if is_name else "csv"


def _by_key(names: Mapping[str, str], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments by their keys, each of the algorithm or else of the data."""
    cfg, _ = composed(names)
    keys = {group: {*(cfg[group] or ())} for group in ("algo", "data") if group in names}
    if "data" in names:
        keys["data.columns"] = {*cfg.data.get("columns", ())}
    homes = {
        key: next((group for group in keys if key.partition(".")[0] in keys[group]), "")
        for key in arguments
    }
    if unknown := [key for key, group in homes.items() if not group]:
        there = [f"{group}: {', '.join(sorted(keys[group]))}" for group in keys]
        raise ConfigError("\n  ".join([f"there is no argument {', '.join(unknown)}", *there]))
    return {f"{homes[key]}.{key}": value for key, value in arguments.items()}


def _checked(group: str, each: Any) -> Any:
    """Return an object that has what its group needs, and plain values as annotated."""
    needed = _NEEDED[group]
    if isinstance(each, type) or not all(hasattr(each, name) for name in needed):
        what = f"neither a name nor an object with {', '.join(needed)}"
        raise ConfigError(f"{group}: {each!r} is {what}")
    if problems := [*wrong_values(each, group)]:
        raise ConfigError(*problems)
    return each


def _digest(objects: Sequence[object]) -> str:
    """Return the digest of objects of one's own, with the program that defines them."""
    if not objects:
        return ""
    program = Path(getattr(sys.modules["__main__"], "__file__", ""))
    code = program.read_bytes() if program.is_file() else b""
    try:  # what was typed into a notebook is known by value alone
        content = code + (pickle if code else cloudpickle).dumps(objects)
    except Exception:  # noqa: BLE001 - one's own classes may raise anything: nothing is like them
        content = uuid.uuid4().bytes
    return hashlib.sha256(content).hexdigest()[:16]


def _content(each: object) -> dict[str, Any]:
    """Return the class of an object and its arguments, if they are plain and not the default."""
    kind = type(each)
    content: dict[str, Any] = {"_target_": f"{kind.__module__}.{kind.__qualname__}"}
    with suppress(TypeError, ValueError):  # written in C
        for name, parameter in inspect.signature(kind).parameters.items():
            value = getattr(each, name, object)
            parts = [*value] if isinstance(value, tuple | list) else [value]
            if value is not parameter.default and all(isinstance(part, _PLAIN) for part in parts):
                content[name] = parts if isinstance(value, tuple | list) else value
    return content
