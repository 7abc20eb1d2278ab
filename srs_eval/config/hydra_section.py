"""Hydra's own section of the configuration, checked before Hydra acts on it.

Option files can set that section too, and Hydra would call the targets in it, set environment
variables and open files before srs_eval runs.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import hydra
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import setup_globals
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from hydra.version import setbase
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from srs_eval.config.option_files import conf_folder
from srs_eval.config.targets import TARGET, Builder
from srs_eval.errors import ConfigError
from srs_eval.text.addresses import has_secret, secret_problem
from srs_eval.text.local_paths import uri_problem

# Jobs of a sweep whose configurations are kept until they begin.
JOBS_KEPT = 100
_FOLDERS = ("run.dir", "sweep.dir", "sweep.subdir")
# Where Hydra saves the settings of a job, inside its folder.
_SUBFOLDERS = (".hydra", None)
# Of the options of a sweeper, those that are called, or printed as a command to be typed.
_CALLED = {
    "at_end": "srs_eval.tuning.ending.keep_in_tracker",
    "command": "python -m srs_eval",
}
# Options of launchers that are commands, or arguments of commands.
_COMMANDS = ("setup", "python", "srun_args", "additional_parameters")
_PLAIN = re.compile(r"[\w.,:;@%+=*~ -]*")


class Loader(ConfigLoaderImpl):
    """Composes configurations of the options that a command has."""

    def __init__(self) -> None:
        setup_globals()
        setbase("1.3")
        super().__init__(create_config_search_path(str(conf_folder())))
        self.ready: DictConfig | None = None  # What is composed already, and asked for next
        self._jobs: dict[tuple[str, ...], DictConfig] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return what the process of a job needs."""
        return {**vars(self), "_jobs": {}}

    def load_configuration(self, *args: Any, **options: Any) -> DictConfig:
        """Return what is ready, once, or compose."""
        ready, self.ready = self.ready, None
        return super().load_configuration(*args, **options) if ready is None else ready

    def load_sweep_config(
        self, master_config: DictConfig, sweep_overrides: list[str]
    ) -> DictConfig:
        """Compose and check the configuration of a job.

        Once, though Hydra asks before a sweep and in it.
        """
        words = tuple(sweep_overrides)
        checked = self._jobs.pop(words, None)
        # Hydra locks its section once a job has begun: another may have the same words
        if checked is not None and not OmegaConf.is_readonly(checked.hydra):
            return checked
        config = super().load_sweep_config(master_config, sweep_overrides)
        _refuse(config)
        if len(self._jobs) < JOBS_KEPT:
            self._jobs[words] = config
        return config


def composed(loader: Loader, overrides: Sequence[str]) -> DictConfig:
    """Compose the configuration of a command, as for a sweep: without the keys that are swept over.

    Raise `ConfigError` for what is refused in Hydra's section.
    """
    try:
        config = loader.load_configuration("config", list(overrides), RunMode.MULTIRUN)
    except KeyError as error:  # Hydra copies variables while it composes
        raise ConfigError(f"hydra.job.env_copy: there is no variable {error}") from error
    _refuse(config)
    return config


def _refuse(config: DictConfig) -> None:
    problems = [*saved_secrets(config), *section_problems(config)]
    if problems:
        raise ConfigError(*dict.fromkeys(problems))


def saved_secrets(config: DictConfig) -> list[str]:
    """Return the settings that have a secret, which Hydra would save before anything else."""
    written: Any = OmegaConf.to_container(config, resolve=False)
    found = {*_secret_keys(written)}
    without_hydra = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    with suppress(OmegaConfBaseException):
        found |= {*_secret_keys(OmegaConf.to_container(without_hydra, resolve=True))}
    return [secret_problem(key) for key in sorted(found)]


def _secret_keys(node: Any) -> Iterator[str]:
    for path, key, value in _below(node, ""):
        texts = value if isinstance(value, list) else [value]
        if any(isinstance(text, str) and has_secret(text) for text in texts):
            yield f"{path}.{key}".removeprefix(".")


def section_problems(config: DictConfig) -> list[str]:
    """Return the refused settings in section ``hydra`` of a composed configuration."""
    section: Any = OmegaConf.to_container(config.hydra, resolve=False)
    return [
        *_job(section),
        *_callbacks(config),
        *_plug_ins(config),
        *_launcher(section),
        *_logging(section),
        *_folders(config),
    ]


def _job(section: Mapping[str, Any]) -> Iterator[str]:
    job, subfolder = section["job"], section["output_subdir"]
    for key in ("env_set", "env_copy"):
        if job[key]:
            yield f"hydra.job.{key}: set variables where the command is typed, as in NAME=VALUE …"
    if not _PLAIN.fullmatch(str(job["name"])):  # part of the names of files
        yield f"hydra.job.name={job['name']}: letters, digits and -_. only"
    if subfolder not in _SUBFOLDERS:
        yield f"hydra.output_subdir={subfolder}: only {_SUBFOLDERS[0]} or null"


def _callbacks(config: DictConfig) -> Iterator[str]:
    callbacks = _resolved(config, "hydra.callbacks")
    if not isinstance(callbacks, Mapping):
        yield "hydra.callbacks: not a mapping, or refers to what is not there"
        return
    for name, options in callbacks.items():
        if not isinstance(options, Mapping) or TARGET not in options:
            yield f"hydra.callbacks.{name}: has no {TARGET}"
            continue
        try:
            Builder().check(options, Callback)
        except ConfigError as error:
            yield f"hydra.callbacks.{name}: {error}"


def _plug_ins(config: DictConfig) -> Iterator[str]:
    """Find targets inside a sweeper or launcher, which Hydra would call.

    Hydra itself requires sweepers and launchers to be in hydra_plugins.
    """
    for kind in ("sweeper", "launcher"):
        plug_in = _resolved(config, f"hydra.{kind}")
        if not isinstance(plug_in, Mapping):
            yield f"hydra.{kind}={plug_in}: choose one with hydra/{kind}=NAME"
            continue
        for path, key, value in _below(plug_in, f"hydra.{kind}"):
            if key == TARGET and path != f"hydra.{kind}":
                yield f"{path}: {value} is not built inside a {kind}"
            if path == "hydra.sweeper.params" and key.lstrip("+~").startswith("hydra"):
                yield f"{path}: {key} is not swept over, because Hydra acts on it before a job"
            if path == "hydra.sweeper" and value not in (None, _CALLED.get(key, value)):
                yield f"{path}.{key}: only {_CALLED[key]} or null"


def _launcher(section: Mapping[str, Any]) -> Iterator[str]:
    """Find options of a launcher that run programs or name files, and were not typed.

    Launchers write some of them into scripts.
    """
    options = section["launcher"]
    if not isinstance(options, Mapping):
        return
    keys = {word.lstrip("+").partition("=")[0] for word in section["overrides"]["hydra"]}
    usual = _usual_options(str(options.get(TARGET)))
    for name, value in options.items():
        key = f"hydra.launcher.{name}"
        is_plain = not isinstance(value, str) or _PLAIN.fullmatch(value)
        is_risky = name in _COMMANDS or isinstance(value, dict | list) or not is_plain
        is_typed = any(each == key or each.startswith((f"{key}.", f"{key}[")) for each in keys)
        if value and is_risky and value not in usual.get(str(name), ()) and not is_typed:
            yield f"{key}: is not taken from an option file; type {key}=…"


def _usual_options(target: str) -> dict[str, list[Any]]:
    """Return the values that launchers with a target have by themselves."""
    store, usual = ConfigStore.instance(), dict[str, list[Any]]()
    for file in store.list("hydra/launcher"):
        node = store.load(f"hydra/launcher/{file}").node
        options: Any = OmegaConf.to_container(node, resolve=False)
        if isinstance(options, Mapping) and options.get(TARGET) == target:
            for name, value in options.items():
                usual.setdefault(str(name), []).append(value)
    return usual


def _logging(section: Mapping[str, Any]) -> Iterator[str]:
    """Find logging options that are not Hydra's, but for levels: a handler writes to any file."""
    for kind in ("job_logging", "hydra_logging"):
        own = _own_logging(kind)
        if _without_levels(section[kind]) not in own.values():
            names = ", ".join(own)
            yield f"hydra.{kind}: only those of Hydra itself; choose hydra/{kind}=NAME from {names}"


@cache
def _own_logging(kind: str) -> dict[str, Any]:
    """Return the options of Hydra for its logging, without levels."""
    folder = Path(hydra.__file__).parent / "conf" / "hydra" / kind
    return {
        file.stem: _without_levels(OmegaConf.to_container(OmegaConf.load(file), resolve=False))
        for file in sorted(folder.glob("*.yaml"))
    }


def _without_levels(node: Any) -> Any:
    if not isinstance(node, Mapping):
        return node
    return {
        key: _without_levels(value)
        for key, value in node.items()
        if key != "level" or str(value) not in logging.getLevelNamesMapping()
    }


def _folders(config: DictConfig) -> Iterator[str]:
    for key in _FOLDERS:
        folder = _resolved(config, f"hydra.{key}")
        text = "." if folder is None else str(folder)
        problem = uri_problem(text)
        if not text.strip():
            problem = "name a folder; . is the one the command is typed in"
        elif Path(text).is_absolute() and Path(text).resolve() == Path(Path(text).anchor):
            problem = "is the root of the file system; name a folder in it"
        if problem:
            yield f"hydra.{key}={text}: {problem}"


def _resolved(config: DictConfig, key: str) -> object:
    """Resolve a value that may refer to Hydra's section; None where only a job can."""
    known = HydraConfig.instance()
    before = known.cfg
    known.cfg = config  # type: ignore[assignment]
    try:
        value = OmegaConf.select(config, key)
        return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
    except OmegaConfBaseException:
        return None
    finally:
        known.cfg = before


def _below(node: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    """Yield every key below a node with its value and the path of its parent."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield path, str(key), value
            yield from _below(value, f"{path}.{key}")
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from _below(value, f"{path}[{number}]")
