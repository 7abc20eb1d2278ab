"""The objects of a run, built from its configuration."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException, InstantiationException
from hydra.utils import get_object, instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException
from pydantic import TypeAdapter, ValidationError

import srs_eval
from srs_eval.algorithms.algorithm import Algorithm, when_of
from srs_eval.data.reviews import Source
from srs_eval.engine.cpu import common_level
from srs_eval.errors import ConfigError
from srs_eval.metrics.panel import Panel
from srs_eval.protocol.task import EvaluationProtocol
from srs_eval.runs.cli import NUMBERS
from srs_eval.runs.options import conf_folder

GROUPS = ("algo", "data", "protocol", "panel", "tracking", "compute")
_FSRS6 = "srs_eval.algorithms.fsrs.fsrs6.Fsrs6"


@dataclass(frozen=True)
class Setup:
    """The objects of a run, and what describes them."""

    algorithm: Algorithm
    source: Source
    protocol: EvaluationProtocol
    panel: Panel
    tracking: Any
    compute: Any
    content: Mapping[str, Any]  # The resolved configuration
    choices: Mapping[str, str]  # Name of the option of each group, or class of an object
    label: str  # The algorithm with its chosen arguments: ``fsrs6(fit=default)``
    objects_hash: str = ""  # Digest of objects whose content the configuration cannot tell
    words: Sequence[str] = ()  # What was typed: ``data.users=3``

    @property
    def config_hash(self) -> str:
        """Digest of every setting that can change a number."""
        numbers = {key: self.content[key] for key in NUMBERS}
        # what was read from the data may be another the next time
        numbers["algo"] = {**numbers["algo"], **getattr(self.algorithm, "from_data", {})}
        if level := common_level():
            numbers["cpu"] = level
        text = json.dumps(numbers, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def code_hash(self) -> str:
        """Digest of the source of srs_eval, and of that of plug-ins in use."""
        return code_hash(frozenset(name.rpartition(".")[0] for name in targets(self.content)))

    @property
    def stamp(self) -> str:
        """Digest of settings and code: what a resumed run shares with the one it continues."""
        return "-".join(filter(None, [self.config_hash, self.code_hash, self.objects_hash]))

    @property
    def tags(self) -> dict[str, str]:
        """What finds the run again."""
        return {
            "protocol_version": str(self.protocol.version),
            "when": when_of(self.algorithm),
            "config_hash": self.config_hash,
            "code_hash": self.code_hash,
            "version": srs_eval.__version__,
            **self.content["tags"],
        }


def composed(
    choices: Mapping[str, str], values: Mapping[str, Any] | None = None
) -> tuple[DictConfig, dict[str, str]]:
    """Compose options by name, as the command does, and set values by key.

    Return the configuration and the option of each group. Raise `ConfigError` if there is no such
    option.
    """
    words = [f"{group}={name}" for group, name in choices.items()]
    # a study is an application of Hydra's own, which goes on afterwards
    around = GlobalHydra.instance().hydra
    GlobalHydra.instance().hydra = None
    try:
        with initialize_config_dir(str(conf_folder()), version_base="1.3"):
            whole = compose("config", overrides=words, return_hydra_config=True)
        cfg = OmegaConf.masked_copy(whole, [str(key) for key in whole if key != "hydra"])
        for key, value in (values or {}).items():
            OmegaConf.update(cfg, key, value, force_add=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(str(error).strip()) from error
    finally:
        GlobalHydra.instance().hydra = around
    return cfg, dict(whole.hydra.runtime.choices)


def build(
    cfg: DictConfig,
    choices: Mapping[str, str],
    arguments: Sequence[str] = (),
    objects: Mapping[str, Any] | None = None,
) -> Setup:
    """Build the objects of a run; `objects` has those of groups that are built already.

    Raise `ConfigError` with all that cannot be built.
    """
    content = resolved(cfg)
    content["protocol"] = _in_user_folds(content["protocol"])
    built = dict(objects or {})
    problems = [
        f"{key}={content[key]}: expected a whole number, 0 or more"
        for key in ("seed", "curves_per_user")
        if content[key] < 0
    ]
    algo = content["algo"]
    is_current = algo.get("_target_") == _FSRS6 and algo.get("parameters") == "current"
    for group in GROUPS:
        try:
            if group not in built and not (group == "algo" and is_current):
                built[group] = option(group, content[group])
        except ConfigError as error:
            problems.append(f"{group}={choices[group]}: {error}")
    if problems:
        raise ConfigError(*problems)
    if is_current:
        built["algo"] = _of_collection(built["data"])
    algorithm, source = built.pop("algo"), built.pop("data")
    label = choices["algo"] + (f"({', '.join(arguments)})" if arguments else "")
    return Setup(algorithm, source, **built, content=content, choices=choices, label=label)


def resolved(cfg: DictConfig) -> dict[str, Any]:
    """Resolve a configuration; raise `ConfigError` if a value is missing."""
    try:
        content = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        raise ConfigError(f"{error.full_key} is missing: add {error.full_key}=…") from error
    except OmegaConfBaseException as error:
        raise ConfigError(str(error)) from error
    # keys become text, and paths: data.ratings={0: 1, pass: 3}
    plain: dict[str, Any] = json.loads(json.dumps(content, default=str))
    return plain


def option(group: str, content: Mapping[str, Any]) -> Any:
    """Build the object of one group from its resolved option."""
    if "_target_" not in content:
        raise ConfigError("its file has no _target_, the class to build")
    problems = list(wrong_values(content, group))
    if problems:
        raise ConfigError(*problems)
    try:
        return instantiate(content, _convert_="all")
    except InstantiationException as error:
        raise ConfigError(str(error.__cause__ or error)) from error


def named_option(group: str, name: str, arguments: Mapping[str, Any]) -> Any:
    """Build the object of one group from the name of an option and its arguments."""
    cfg, _ = composed({group: name}, {group: arguments})
    return option(group, resolved(cfg)[group])


def targets(content: Any) -> Iterator[str]:
    """Go through the classes that options name, also inside others."""
    if isinstance(content, Mapping):
        if "_target_" in content:
            yield str(content["_target_"])
        content = list(content.values())
    if isinstance(content, list | tuple):
        for value in content:
            yield from targets(value)


def wrong_values(node: Any, key: str) -> Iterator[str]:
    """Yield what is wrong with plain values in an option or an object of a dataclass."""
    if isinstance(node, Mapping):
        target, values = node.get("_target_"), node
    elif isinstance(node, list):
        target, values = None, dict(enumerate(node))
    elif is_dataclass(node) and not isinstance(node, type):
        values = {f.name: getattr(node, f.name) for f in fields(node) if f.init}
        target = type(node)
    else:
        return
    yield from _wrong(target, values, key)
    for name, value in values.items():
        yield from wrong_values(value, f"{key}.{name}")


def _wrong(target: Any, values: Mapping[str, Any], key: str) -> Iterator[str]:
    """Check arguments of a class or function, or of what has a name, by its annotations."""
    hints: dict[str, Any] = {}
    with suppress(Exception):  # Hydra tells it, or it is a name that only type checkers see
        target = get_object(target) if isinstance(target, str) else target
        for each in (target, target.__init__) if inspect.isclass(target) else (target,):
            with suppress(NameError):
                hints |= get_type_hints(each, include_extras=True)
    for name, value in values.items():
        if _is_plain(hints.get(name)):
            try:
                TypeAdapter(hints[name]).validate_python(value)
            except ValidationError as error:
                yield f"{key}.{name}={value!r}: {error.errors()[0]['msg']}"


def _is_plain(hint: Any) -> bool:
    """Whether pydantic can check a value: text, numbers, paths, and choices of these."""
    if get_origin(hint) is Annotated:
        return _is_plain(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return all(map(_is_plain, get_args(hint)))
    return hint in (bool, int, float, str, NoneType, Path) or get_origin(hint) is Literal


def _in_user_folds(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """Put a protocol inside `UserFolds` where ``user_folds`` is set: an option of every one."""
    base = {name: value for name, value in protocol.items() if name != "user_folds"}
    folds = protocol.get("user_folds")
    if folds is None:
        return base
    target = "srs_eval.protocol.user_folds.UserFolds"
    return {"_target_": target, "base": base, "user_folds": folds}


def _of_collection(source: Source) -> Algorithm:
    """Return FSRS-6 with the parameters that a collection has now for each preset."""
    # Here, so that other runs do not load readers and engine
    from srs_eval.algorithms.fsrs.current import CurrentParameters, as_fsrs6
    from srs_eval.data.anki.collection import AnkiCollection
    from srs_eval.data.anki.groups import read_fsrs_settings

    if not isinstance(source, AnkiCollection):
        raise ConfigError("algo.parameters=current needs data=anki")
    settings = read_fsrs_settings(source.location)
    if not settings.enabled:
        raise ConfigError(f"algo.parameters=current: FSRS is off in {source.location}")
    presets = settings.presets.items()
    return CurrentParameters({number: as_fsrs6(preset.parameters) for number, preset in presets})


@cache
def code_hash(modules: frozenset[str] = frozenset()) -> str:
    """Return the digest of the source of srs_eval, and of other modules."""
    files = set(Path(srs_eval.__file__).parent.rglob("*.py"))
    for module in modules:
        # what was typed into a notebook has no file
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is not None and Path(file).is_file():
            files.add(Path(file))
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
