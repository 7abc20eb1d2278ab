"""The objects of one job, built from its configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from srs_eval.compute.interface import Compute
from srs_eval.config.option_files import values
from srs_eval.config.suggestions import unknown_options
from srs_eval.config.targets import TARGET, Builder, classes_of
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.metrics.panel import Panel
from srs_eval.nouns import Algorithm, EvaluationProtocol, Source
from srs_eval.tracking.tracker import Tracker

# In place of a list: the parameters that the Anki collection has now.
CURRENT = "current"
_USER_FOLDS = "srs_eval.protocol.user_folds.UserFolds"
# Protocol of each group.
KINDS: Mapping[str, type] = {
    "algo": Algorithm,
    "data": Source,
    "protocol": EvaluationProtocol,
    "panel": Panel,
    "tracking": Tracker,
    "compute": Compute,
}


@dataclass(frozen=True, slots=True)
class Input:
    """An object, and what describes it."""

    built: Any  # Such as an algorithm
    name: str  # Name of the option, or of the class of an object
    # The option's resolved configuration; for an object, its class and plain arguments
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Inputs:
    """The input of each group, and what is in no group."""

    groups: Mapping[str, Input]
    settings: Mapping[str, Any]  # Seed and the like

    def __getitem__(self, group: str) -> Any:
        """Return the object of a group."""
        return self.groups[group].built

    @property
    def content(self) -> dict[str, Any]:
        """The whole configuration."""
        return {group: each.content for group, each in self.groups.items()} | dict(self.settings)


def resolved(cfg: DictConfig, choices: Mapping[str, str]) -> dict[str, Any]:
    """Resolve the configuration of an evaluation; raise an error if required values are missing."""
    try:
        missing = sorted(OmegaConf.missing_keys(cfg))
        content: Any = None if missing else OmegaConf.to_container(cfg, resolve=True)
    except (OmegaConfBaseException, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        key = getattr(error, "full_key", None) or "the settings"
        raise ConfigError(f"{key} cannot be resolved: {reason}") from error
    if missing:
        chosen = {key: key.partition(".")[0] for key in missing}
        lines = [f"{group}={choices.get(group)} needs {key}=…" for key, group in chosen.items()]
        raise ConfigError(*lines)
    found: dict[str, Any] = _keyed_by_text(content)
    if "protocol" in found:
        found["protocol"] = in_user_folds(found["protocol"])
    if isinstance(found.get("algo"), Mapping):
        found["algo"] = _with_options(found["algo"], "algo")
    return found


def _keyed_by_text(value: Any) -> Any:
    """Make keys text, as hashes and parameters of runs need: ``data.ratings={0: 1, pass: 3}``."""
    if isinstance(value, Mapping):
        return {str(key): _keyed_by_text(inner) for key, inner in value.items()}
    return [_keyed_by_text(inner) for inner in value] if isinstance(value, list) else value


def _with_options(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Put the options of an algorithm in place of its name, as in ``algo.base=fsrs6``."""
    if TARGET not in content:
        return dict(content)
    try:
        owner = Builder().find(str(content[TARGET]))
        takes = {name: Algorithm in classes_of(owner, name) for name in content}
    except ConfigError:
        return dict(content)  # what is wrong is told when it is built

    def whole(value: Any, place: str, *, is_algorithm: bool) -> Any:
        if isinstance(value, str) and is_algorithm:
            if problems := unknown_options("algo", [value]):
                raise ConfigError(*(f"{place}={value}: {problem}" for problem in problems))
            options = values("algo", value)
            return _with_options(_essential(options), place)
        if isinstance(value, Mapping) and TARGET in value:
            return _with_options(value, place)
        if isinstance(value, Mapping):
            return {
                name: whole(inner, f"{place}.{name}", is_algorithm=is_algorithm)
                for name, inner in value.items()
            }
        return value

    return {
        name: whole(value, f"{key}.{name}", is_algorithm=takes[name])
        for name, value in content.items()
    }


def _essential(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not the defaults of their class."""
    known = signature(Builder().find(str(content[TARGET]))).parameters
    return {
        name: value
        for name, value in content.items()
        if name not in known or value != known[name].default
    }


def build(content: Mapping[str, Any], choices: Mapping[str, str]) -> Inputs:
    """Build the object of each group from a resolved configuration."""
    built: dict[str, Any] = {}
    problems: list[str] = []
    options = {group: content[group] or {} for group in KINDS}
    is_current = options["algo"].get("parameters") == CURRENT
    if is_current:  # nothing is fitted, and the collection has them
        usual = values("algo", choices["algo"])
        problems += _without_effect(options["algo"], usual)
        options["algo"] = {**usual, "fit": "default"}
    for group in KINDS:
        try:
            built[group] = build_option(group, choices[group], options[group])
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError(*problems)
    if is_current:
        built["algo"] = _of_collection(built["algo"], built["data"])
    groups = {group: Input(built[group], choices[group], content[group]) for group in KINDS}
    return Inputs(groups, {key: content[key] for key in content if key not in KINDS})


def in_user_folds(protocol: Any) -> Any:
    """Return the options of a protocol, in those of folds of users where ``user_folds`` is given.

    So it is an option of every protocol, also of those of others.
    """
    if not isinstance(protocol, Mapping) or "user_folds" not in protocol:
        return protocol
    base = {name: value for name, value in protocol.items() if name != "user_folds"}
    folds = protocol["user_folds"]
    return base if folds is None else {TARGET: _USER_FOLDS, "base": base, "user_folds": folds}


def _without_effect(content: Mapping[str, Any], usual: Mapping[str, Any]) -> Iterator[str]:
    """Yield a problem for each argument of a fit, where there is none."""
    for name, value in content.items():
        is_default = name == "fit" and value == "default"
        if name not in (TARGET, "parameters") and value != usual.get(name) and not is_default:
            yield (
                f"algo.{name}={value} has no effect with algo.parameters={CURRENT}, which fits "
                "nothing: leave one of them out"
            )


def _of_collection(algorithm: Algorithm, source: Source) -> Algorithm:
    """Return FSRS-6 with the parameters that a collection has now for each preset."""
    # Here, so that other runs do not load readers and engine
    from srs_eval.algorithms.fsrs.current import CurrentParameters, current_parameters
    from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
    from srs_eval.data.anki.collection import AnkiCollection
    from srs_eval.data.anki.presets import read_fsrs_settings

    if not isinstance(algorithm, Fsrs6) or not isinstance(source, AnkiCollection):
        raise ConfigError(f"algo.parameters={CURRENT} needs algo=fsrs6 and data=anki")
    settings = read_fsrs_settings(source.location)
    if not settings.enabled:
        raise ConfigError(
            f"algo.parameters={CURRENT}: FSRS is off in {source.location}; algo.fit=default has "
            "the default parameters"
        )
    stored = {number: preset.parameters for number, preset in settings.presets.items()}
    return CurrentParameters(current_parameters(stored))


def build_option(group: str, name: str, content: Mapping[str, Any]) -> Any:
    """Build the object of one group from the resolved configuration of the chosen option."""
    if TARGET not in content:
        raise ConfigError(f"{group}={name}: its file has no {TARGET}, the class to build")
    try:
        return Builder().build(content, KINDS[group], group)
    except SrsEvalError as error:
        raise ConfigError(f"{group}={name}: {error}") from error
