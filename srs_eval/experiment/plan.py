"""A configuration made into the objects of one job."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srs_eval.comparison.selection import (
    ON_TEST_ROWS,
    ON_VALIDATION_ROWS,
    TAG,
    sweeps_settings,
)
from srs_eval.compute.interface import Compute
from srs_eval.compute.processes import Processes
from srs_eval.compute.serial import Serial
from srs_eval.errors import ConfigError
from srs_eval.metrics.panel import Panel
from srs_eval.nouns import Algorithm, EvaluationProtocol, Source
from srs_eval.results.run import is_run
from srs_eval.tracking.tracker import Tracker
from srs_eval.tuning.identity import sweep_id
from srs_eval.tuning.progress import RunningTrial

_WITHOUT_EFFECT_ON_NUMBERS = (
    *("tracking", "compute", "name", "resume", "figures", "notes", "tags", "baseline"),
)
_NOT_NEGATIVE = ("seed", "curves_per_user")

_DECLARED = ("same_day", "online", "sees_truth")


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything one job needs.

    Attributes
    ----------
    algo, data : str
        Names of the options that were chosen.
    label : str
        The algorithm with those of its arguments that are not at their defaults.
    params : mapping
        The resolved configuration, flat.
    options : mapping of group to mapping
        The resolved configuration of what was built, with what each was built by.
    config_hash : str
        Digest of every setting that can change a number.
    code_hash : str
        Digest of the source files of srs_eval, and of those of the plug-ins in use.
    sweep_folder : Path, optional
        Folder of all jobs, if this is one of several.
    baseline : Path, optional
        Folder of a finished run to compare with; None takes the first job of a sweep.
    trial : RunningTrial, optional
        The place of the job in a search.
    """

    algo: str
    data: str
    label: str
    name: str
    algorithm: Algorithm
    source: Source
    protocol: EvaluationProtocol
    panel: Panel
    tracker: Tracker
    compute: Compute
    seed: int
    curves_per_user: int
    figures: bool
    resume: bool
    notes: str
    tags: Mapping[str, str]
    params: Mapping[str, str | int | float | bool | None]
    options: Mapping[str, Mapping[str, Any]]
    config_hash: str
    code_hash: str
    folder: Path
    sweep_id: str | None
    sweep_folder: Path | None = None
    baseline: Path | None = None
    trial: RunningTrial | None = None


def make_plan(
    built: Mapping[str, Any],
    content: Mapping[str, Any],
    choices: Mapping[str, str],
    *,
    usual: Mapping[str, Any],
    folder: Path,
    sweep_folder: Path | None,
    trial: RunningTrial | None = None,
) -> Plan:
    """Put the objects of a job together with what describes them.

    Parameters
    ----------
    built : mapping of group to object
    content : mapping
        The resolved configuration.
    choices : mapping of group to str
        Name of the option chosen in each group.
    usual : mapping
        Arguments of the algorithm as its option has them.
    trial : RunningTrial, optional
        The place of the job in a search.

    Raises
    ------
    ConfigError
        If a number is negative that cannot be, the baseline is no finished run, or a search
        would choose by test rows or by a metric that there is not.
    """
    negative = [f"{key}={content[key]}" for key in _NOT_NEGATIVE if content[key] < 0]
    if negative:
        raise ConfigError(f"{', '.join(negative)}: expected a whole number, 0 or more")
    _require_declarations(built["algo"], choices["algo"])
    if trial is not None:
        _require_validation(built, choices, trial)
    label = (
        choices["algo"]
        + _inside(content["algo"])
        + _arguments(built["algo"], content["algo"], usual)
    )
    return Plan(
        algo=choices["algo"],
        data=choices["data"],
        label=label,
        name=content["name"] or f"{label} on {choices['data']}",
        algorithm=built["algo"],
        source=built["data"],
        protocol=built["protocol"],
        panel=built["panel"],
        tracker=built["tracking"],
        compute=_apart(built["compute"]) if sweep_folder is not None else built["compute"],
        seed=content["seed"],
        curves_per_user=content["curves_per_user"],
        figures=content["figures"],
        resume=content["resume"],
        notes=content["notes"],
        tags={**content["tags"], **_sweep_tags(built["protocol"], sweep_folder, trial)},
        params=_flat({**{group: choices[group] for group in built}, **_flat(content)}),
        options={group: content[group] for group in built if group in content},
        config_hash=_digest(
            {key: value for key, value in content.items() if key not in _WITHOUT_EFFECT_ON_NUMBERS}
        ),
        code_hash=_code_hash(built.values()),
        folder=folder,
        sweep_id=None if sweep_folder is None else sweep_id(sweep_folder),
        sweep_folder=sweep_folder,
        baseline=_finished_run(content.get("baseline"), folder),
        trial=trial,
    )


def _apart(compute: Compute) -> Compute:
    """Evaluate a job of a sweep in processes of its own.

    What an algorithm keeps outside its models (in a module, in a class) ends with them, so that no
    job learns from the test rows of another.
    """
    return Processes(workers=1) if isinstance(compute, Serial) else compute


def _sweep_tags(
    protocol: EvaluationProtocol, sweep_folder: Path | None, trial: RunningTrial | None
) -> dict[str, str]:
    """Tag a trial with its number, and a job of a grid over settings with what it is scored on."""
    if trial is not None:
        return {"trial": str(trial.number)}
    if sweep_folder is None or not sweeps_settings(sweep_folder):
        return {}
    is_validation = getattr(protocol, "is_validation", False)
    return {TAG: ON_VALIDATION_ROWS if is_validation else ON_TEST_ROWS}


def _wrong_objective(panel: Panel, option: str, trial: RunningTrial) -> list[str]:
    """Say why a search would not find what is best, if it would not."""
    better = {metric.name: metric.better for metric in panel}
    about = f"hydra.sweeper.metric={trial.metric}"
    if trial.metric not in better:
        return [f"{about}: not in panel={option}; there are {', '.join(better)}"]
    towards = {"lower": "minimize", "higher": "maximize"}.get(better[trial.metric])
    if towards is None:
        fit = ", ".join(name for name, way in better.items() if way in ("lower", "higher"))
        return [f"{about}: neither the lowest nor the highest is best; there are {fit}"]
    if trial.direction != towards:
        return [f"{about}: {better[trial.metric]} is better; add hydra.sweeper.direction={towards}"]
    return []


def _finished_run(baseline: str | None, own: Path) -> Path | None:
    """Make sure that there is a baseline to compare with before anything is fitted."""
    if baseline is None:
        return None
    folder = Path(baseline).expanduser()
    if not is_run(folder):
        raise ConfigError(
            f"baseline={baseline}: expected the folder of a finished run, with summary.json and "
            "scores.parquet"
        )
    if folder.resolve() == own.resolve():
        raise ConfigError(
            f"baseline={baseline}: this run would overwrite it; give another hydra.run.dir"
        )
    return folder


def _require_validation(
    built: Mapping[str, Any], choices: Mapping[str, str], trial: RunningTrial
) -> None:
    """Refuse a search that chooses by the rows it will be scored on, or by nothing."""
    problems = []
    if not getattr(built["protocol"], "is_validation", False):
        problems.append(
            f"protocol={choices['protocol']}: a search by its test rows would flatter the best; "
            "take protocol=validation, which has rows before them (protocol.base=… for others "
            "than those of srs_benchmark)"
        )
    problems += _wrong_objective(built["panel"], choices["panel"], trial)
    if problems:
        raise ConfigError("\n".join(problems))


def _require_declarations(algorithm: object, name: str) -> None:
    """Refuse an algorithm that does not say what every table needs to know of it."""
    missing = [said for said in _DECLARED if not isinstance(getattr(algorithm, said, None), bool)]
    if missing:
        raise ConfigError(
            f"algo={name}: {type(algorithm).__name__} does not say whether {', '.join(missing)}; "
            "make it a subclass of srs_eval.nouns.Algorithm, or give it these as True or False"
        )


def _arguments(algorithm: object, given: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    """Those arguments that are not what the option has, or else the class, as ``(fit=s0)``."""
    known = inspect.signature(type(algorithm)).parameters
    changed = [
        f"{name}={value}"
        for name, value in given.items()
        if name in known
        and not isinstance(value, Mapping)
        and value != usual.get(name, known[name].default)
    ]
    return f"({', '.join(changed)})" if changed else ""


def _inside(content: Mapping[str, Any]) -> str:
    """Name the algorithms an algorithm is made of, with their arguments, as ``[Fsrs6 + Dash]``."""
    found = _made_of(content)
    return f"[{' + '.join(found)}]" if found else ""


def _made_of(content: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for value in content.values():
        if isinstance(value, Mapping) and "_target_" in value:
            name = str(value["_target_"]).rpartition(".")[2] + _inside(value)
            plain = {key: v for key, v in value.items() if not isinstance(v, Mapping)}
            said = [f"{key}={v}" for key, v in plain.items() if key != "_target_"]
            found.append(name + (f"({', '.join(said)})" if said else ""))
        elif isinstance(value, Mapping):
            found += _made_of(value)
    return found


def _flat(content: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            flat[prefix + key] = json.dumps(value)
        elif key != "_target_":
            flat[prefix + key] = value
    return flat


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _code_hash(objects: Iterable[object]) -> str:
    files = set(Path(__file__).parents[1].rglob("*.py"))
    for used in objects:
        module = sys.modules.get(type(used).__module__)
        file = getattr(module, "__file__", None)  # what was typed into a notebook has none
        if file is not None:
            files.add(Path(file))
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
