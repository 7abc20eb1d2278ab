"""Hydra's own section of the configuration, checked before Hydra acts on it.

Option files can set that section too, and Hydra would call the targets in it, set environment
variables and open files before srs_eval runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from srs_eval.config.option_files import conf_folder
from srs_eval.config.targets import TARGET, Builder
from srs_eval.errors import ConfigError
from srs_eval.text.local_paths import uri_problem

_FOLDERS = ("run.dir", "sweep.dir", "sweep.subdir", "output_subdir")
# Classes of Hydra's own logging options.
_LOGGING = ("logging.StreamHandler", "logging.FileHandler", "logging.NullHandler")
_STREAMS = ("ext://sys.stdout", "ext://sys.stderr")
_AT_END = "srs_eval.tuning.ending.keep_in_tracker"


def refused_before(overrides: Sequence[str], folders: Sequence[Path]) -> list[str]:
    """Return the settings of a command line that are refused in Hydra's section.

    Options that a sweep chooses are composed too, because their logging settings take effect before
    their job begins.
    """
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        # as for a sweep, without the keys that are swept over
        try:
            config = _composed(overrides)
        except KeyError as error:  # Hydra copies variables while it composes
            return [f"hydra.job.env_copy: there is no variable {error}"]
        found = section_problems(config)
        params = OmegaConf.select(config, "hydra.sweeper.params")
        swept: Any = params.items() if isinstance(params, DictConfig) and not found else ()
        words = [*overrides, *(f"{key}={value}" for key, value in swept)]
        for word in _chosen_by_sweep(words, folders):
            found += section_problems(_composed([*overrides, word]))
    return list(dict.fromkeys(found))


def _composed(overrides: Sequence[str]) -> DictConfig:
    loader = GlobalHydra.instance().config_loader()
    return loader.load_configuration("config", list(overrides), RunMode.MULTIRUN)


def _chosen_by_sweep(words: Sequence[str], folders: Sequence[Path]) -> list[str]:
    """Return the options in the user's folders that a sweep may choose."""
    chosen = []
    for word in words:
        group, _, names = word.lstrip("+").partition("=")
        own = {file.stem for folder in folders for file in (folder / group).glob("*.yaml")}
        is_sweep = "," in names or "(" in names
        chosen += [
            f"{group}={name}"
            for name in sorted(own)
            if is_sweep and ("glob(" in names or re.search(rf"\b{re.escape(name)}\b", names))
        ]
    return chosen


def section_problems(config: DictConfig) -> list[str]:
    """Return the refused settings in section ``hydra`` of a composed configuration."""
    section: Any = OmegaConf.to_container(config.hydra, resolve=False)
    return [
        *_environment(section["job"]),
        *_callbacks(section["callbacks"] or {}),
        *_plug_ins(section),
        *_logging(section),
        *_folders(config),
    ]


def _environment(job: Mapping[str, Any]) -> Iterator[str]:
    for key in ("env_set", "env_copy"):
        if job[key]:
            yield f"hydra.job.{key}: set variables where the command is typed, as in NAME=VALUE …"


def _callbacks(callbacks: Mapping[str, Any]) -> Iterator[str]:
    for name, options in callbacks.items():
        if not isinstance(options, Mapping) or TARGET not in options:
            yield f"hydra.callbacks.{name}: has no {TARGET}"
            continue
        try:
            Builder().check(options, Callback)
        except ConfigError as error:
            yield f"hydra.callbacks.{name}: {error}"


def _plug_ins(section: Mapping[str, Any]) -> Iterator[str]:
    """Find targets inside a sweeper or launcher, which Hydra would call.

    Hydra itself requires sweepers and launchers to be in hydra_plugins.
    """
    for kind in ("sweeper", "launcher"):
        if not isinstance(section[kind], Mapping):
            yield f"hydra.{kind}={section[kind]}: choose one with hydra/{kind}=NAME"
        for path, key, value in _below(section[kind], f"hydra.{kind}"):
            if key == TARGET and path != f"hydra.{kind}":
                yield f"{path}: {value} is not built inside a {kind}"
    sweeper = section["sweeper"]
    if isinstance(sweeper, Mapping) and sweeper.get("at_end") not in (None, _AT_END):
        yield f"hydra.sweeper.at_end: only {_AT_END} or null"


def _logging(section: Mapping[str, Any]) -> Iterator[str]:
    for kind in ("job_logging", "hydra_logging"):
        for path, key, value in _below(section[kind], f"hydra.{kind}"):
            is_foreign = key == "()" or (key == "class" and value not in _LOGGING)
            is_object = str(value).startswith(("ext://", "cfg://")) and value not in _STREAMS
            if is_foreign or is_object:
                yield f"{path}.{key}={value}: only the classes of Hydra's own logging options"


def _folders(config: DictConfig) -> Iterator[str]:
    for key in _FOLDERS:
        text = _resolved(config, f"hydra.{key}")
        problem = None if text is None else _folder_problem(str(text))
        if problem:
            yield f"hydra.{key}={text}: {problem}"


def _resolved(config: DictConfig, key: str) -> object:
    """Resolve a value that may refer to Hydra's section; None where only a job can."""
    known = HydraConfig.instance()
    before = known.cfg
    known.cfg = config  # type: ignore[assignment]
    try:
        return OmegaConf.select(config, key)
    except OmegaConfBaseException:
        return None
    finally:
        known.cfg = before


def _folder_problem(text: str) -> str:
    if not text.strip():
        return "name a folder; . is the one the command is typed in"
    if Path(text).is_absolute() and Path(text).resolve() == Path(Path(text).anchor):
        return "is the root of the file system; name a folder in it"
    return uri_problem(text)


def _below(node: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    """Yield every key below a node with its value and the path of its parent."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield path, str(key), value
            yield from _below(value, f"{path}.{key}")
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from _below(value, f"{path}[{number}]")
