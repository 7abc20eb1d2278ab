"""What is evaluated, given by the names of options or as objects."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, cast

from srs_eval.config import chosen
from srs_eval.config.building import KINDS, Input, Inputs, build_option
from srs_eval.config.option_files import defaults, options
from srs_eval.config.suggestions import unknown_options
from srs_eval.config.targets import TARGET, require
from srs_eval.data.table import ReviewTable, is_table, to_pandas
from srs_eval.nouns import Algorithm, Source
from srs_eval.run.description import RunDescription, described
from srs_eval.run.experiment import Experiment

_ANKI = (".colpkg", ".apkg", ".anki2", ".anki21", ".anki21b")
_OPTIONAL = ("protocol", "panel")
_PLAIN = (int, float, str, bool, type(None))


class ArrowTable(Protocol):
    """A table of any library that can be read as Arrow, such as a polars frame."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as a stream of Arrow's C interface."""


AlgorithmLike = str | Algorithm
# A pandas frame has `__arrow_c_stream__` too.
DataLike = str | Path | Source | ArrowTable


@dataclass(frozen=True, slots=True)
class Gathered(Inputs):
    """The inputs of a run in Python."""

    # Arguments that other data can be read with, by the option that takes them
    data_arguments: Mapping[str | None, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def experiment(self) -> Experiment:
        """The experiment they make."""
        return Experiment.of(self)

    def description(self) -> RunDescription:
        """Return what describes a run, with the digests of configuration and code."""
        about = described(self)
        label = self.settings["name"] or about.label
        return replace(about, label=label, tags={**about.tags, "label": label})


def algorithm(name: str, **arguments: Any) -> Algorithm:
    """Build an algorithm by its name on the command line.

    Parameters
    ----------
    name : str
        Such as ``fsrs6``; ``python -m srs_eval 'algo=?'`` lists them.
    **arguments
        Arguments of the option, such as ``fit="reference"``.

    Raises
    ------
    ConfigError
        If there is no such algorithm or argument, saying what was probably meant.

    Examples
    --------
    >>> algorithm("constant", p=0.8)
    Constant(p=0.8)
    """
    return cast(Algorithm, _named("algo", name, arguments).built)


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
        If there is no such option or argument, saying what was probably meant.
    ReviewLogError
        If a table in memory lacks a column.

    Examples
    --------
    >>> list(source("synthetic", users=2).users())
    [1, 2]
    """
    return cast(Source, _data(data, _columns_inside(data, arguments)).built)


def gathered(
    given: Mapping[str, Any], arguments: Mapping[str, Any], settings: Mapping[str, Any]
) -> Gathered:
    """Build everything that is given by name, and check everything that is an object.

    `given` has names and objects by group, where None stands for the option that the command takes
    by default; `arguments` are those of the algorithm and of the data; `settings` are in no group.
    """
    usual = {group: name for group, name in defaults().items() if group in _OPTIONAL}
    given = {group: usual.get(group) if each is None else each for group, each in given.items()}
    names: dict[str, Any] = {"algo": given["algo"], "data": option_of_data(given["data"])}
    by_name = {group: name for group, name in names.items() if isinstance(name, str)}
    for group, name in by_name.items():
        chosen.refuse(unknown_options(group, [name]))
    of_group = chosen.divided(arguments, by_name)
    groups = {"algo": _input("algo", given["algo"], of_group.get("algo", {}))}
    groups["data"] = _data(given["data"], of_group.get("data", {}))
    groups |= {name: _input(name, given[name], {}) for name in given if name not in groups}
    known = chosen.settings()
    usable = {key: value for key, value in settings.items() if value is not None}
    wrong = [
        f"{key}={usable[key]!r}: expected a whole number, 0 or more"
        for key in ("seed", "curves_per_user")
        if key in usable and (type(usable[key]) is not int or usable[key] < 0)
    ]
    chosen.refuse(wrong)
    chosen_users = ("users", "sample", "first")
    of_data = {k: value for k, value in of_group.get("data", {}).items() if k not in chosen_users}
    return Gathered(groups, known | usable, {names["data"]: of_data})


def option_of_data(data: object) -> str | None:
    """Return the name of the option that reads some data; None for a source that is an object."""
    if is_table(data):
        return "csv"
    if isinstance(data, str) and data in options("data"):
        return data
    if not isinstance(data, str | Path):
        return None
    path = Path(data).expanduser()
    if path.suffix.lower() in _ANKI:
        return "anki"
    if (path / "revlogs").is_dir() or any(path.glob("user_id=*")):
        return "revlogs_10k"
    if path.is_dir() and any("=" in each.name for each in path.iterdir()):
        return "partitioned"
    is_misspelt = isinstance(data, str) and data.isidentifier() and not path.exists()
    return str(data) if is_misspelt else "csv"


def _named(group: str, name: str, arguments: Mapping[str, Any]) -> Input:
    content = chosen.option(group, name, arguments)
    return Input(build_option(group, name, content), name, content)


def _input(group: str, given: Any, arguments: Mapping[str, Any]) -> Input:
    if isinstance(given, str):
        return _named(group, given, arguments)
    require(given, KINDS[group], group)
    return Input(given, type(given).__name__, _content(given))


def _data(data: Any, arguments: Mapping[str, Any]) -> Input:
    option = option_of_data(data)
    if option is None:
        if not hasattr(data, "read"):
            to_pandas(data)  # which says what a table is
        chosen.divided(arguments, {})  # an object has none
        return _input("data", data, {})
    if is_table(data):
        return _frame(data, arguments)
    of_path = {} if data == option else {"path": str(data)}
    return _named("data", option, {**arguments, **of_path})


def _frame(table: Any, arguments: Mapping[str, Any]) -> Input:
    """Describe a table in memory as the option that reads files would, and read it."""
    frame = to_pandas(table)
    # of an index it is refused below, as any column that is needed
    usual = {"columns.user": "user"} if "user" in {*frame.columns, *frame.index.names} else {}
    content = chosen.option("data", "csv", {**usual, **arguments, "path": "frame"})
    arguments = {key: value for key, value in content.items() if key not in (TARGET, "path")}
    columns = {key: value for key, value in content["columns"].items() if key != TARGET}
    built = ReviewTable(frame, **{**arguments, "columns": columns})
    return Input(built, built.name, content)


def _columns_inside(data: object, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Complete the names of columns."""
    option = option_of_data(data)
    if option is None:
        return arguments
    chosen.refuse(unknown_options("data", [option]))
    return chosen.divided(arguments, {"data": option})["data"]


def _content(given: object) -> dict[str, Any]:
    """Return the class of an object and its arguments, if they are plain and not the default."""
    kind = type(given)
    found: dict[str, Any] = {TARGET: f"{kind.__module__}.{kind.__qualname__}"}
    try:
        parameters = inspect.signature(kind).parameters
    except (TypeError, ValueError):  # written in C
        return found
    for name, parameter in parameters.items():
        value = getattr(given, name, object)
        if value is parameter.default:
            continue
        if isinstance(value, tuple | list):
            value = list(value) if all(isinstance(part, _PLAIN) for part in value) else object
        if isinstance(value, (*_PLAIN, list)):
            found[name] = value
    return found
