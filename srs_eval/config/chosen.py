"""Options chosen by name from Python: composed as the command does it, without Hydra."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from srs_eval.config.building import resolved
from srs_eval.config.option_files import arguments, composed_option, conf_folder
from srs_eval.config.suggestions import had_argument, unknown_argument, unknown_options
from srs_eval.errors import ConfigError

_COLUMNS = "columns."
_OF_THE_COMMAND = ("defaults", "hydra")


def settings() -> dict[str, Any]:
    """Return what is in no group: the seed and the like, at the defaults of the command."""
    loaded: Any = OmegaConf.to_container(OmegaConf.load(conf_folder() / "config.yaml"))
    return {key: loaded[key] for key in loaded if key not in _OF_THE_COMMAND}


def option(group: str, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of an option, as ``group=name group.argument=value`` makes it.

    Names of given arguments with dots reach inside.
    """
    refuse(unknown_options(group, [name]))
    known = arguments(group, name)[name]
    problems = [
        problem
        for key, value in given.items()
        if key not in known
        for problem in unknown_argument(f"{key}={value!r}", f"{group}.{key}", [name])
    ]
    refuse(problems)
    content = composed_option(group, name)
    for key, value in given.items():
        try:
            OmegaConf.update(content, key, _plain(value), merge=True)
        except OmegaConfBaseException as error:
            reason = str(error).partition("\n")[0]
            raise ConfigError(f"{group}.{key}={value!r}: {reason}") from error
    everything: DictConfig = OmegaConf.create({group: content})
    found: dict[str, Any] = resolved(everything, {group: name})[group]
    return found


def divided(given: Mapping[str, Any], chosen: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Assign arguments to the options that have them: a mapping of group to arguments.

    `given` has arguments by name, those of columns without ``columns.``; `chosen` the option of
    each group that was chosen by name.
    """
    known = {group: arguments(group, name)[name] for group, name in chosen.items()}
    found: dict[str, dict[str, Any]] = {group: {} for group in chosen}
    problems = []
    for key, value in given.items():
        ways = (key, _COLUMNS + key)
        having = [(group, path) for group in known for path in ways if path in known[group]]
        groups = list(dict(having))
        if len(groups) == 1:
            found[groups[0]][having[0][1]] = value
        elif groups:
            options = " and ".join(f"{group}={chosen[group]}" for group in groups)
            problems.append(
                f"{key}={value!r}: {options} have it; give it to srs_eval.algorithm(…) or "
                "srs_eval.source(…), and what they return to this function"
            )
        else:
            problems += _unknown(key, value, chosen, known)
    refuse(problems)
    return found


def refuse(problems: list[str]) -> None:
    """Raise a `ConfigError` with all problems, if there are any."""
    if problems:
        raise ConfigError(*problems)


def _unknown(
    key: str, value: Any, chosen: Mapping[str, str], known: Mapping[str, set[str]]
) -> list[str]:
    """Return the message for an argument that no option has: of the group with one like it."""
    if not chosen:
        return [f"{key}={value!r}: there is no argument {key!r}"]
    names = {path.removeprefix(_COLUMNS): (group, path) for group in known for path in known[group]}
    close = difflib.get_close_matches(key, names, n=1)
    group, path = names[close[0]] if close else (next(iter(chosen)), key)
    group = had_argument(key, chosen) or group
    inside = _COLUMNS if path.startswith(_COLUMNS) else ""
    return unknown_argument(f"{key}={value!r}", f"{group}.{inside}{key}", [chosen[group]])


def _plain(value: Any) -> Any:
    """Convert values of Python to those of option files."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | range | set | frozenset):
        return [_plain(inner) for inner in value]
    return value
