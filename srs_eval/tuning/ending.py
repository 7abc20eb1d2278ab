"""The result of a search: overlay, figures, summary, and in srs_eval a run in the tracker."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import QuotedString
from omegaconf import DictConfig, OmegaConf
from optuna.trial import FrozenTrial, TrialState

from srs_eval.config.targets import Builder
from srs_eval.errors import SrsEvalError
from srs_eval.nouns.when import IN_WORDS, UNKNOWN
from srs_eval.results.files import SUMMARY
from srs_eval.results.remarks import too_few
from srs_eval.text.console import complain, facts
from srs_eval.tracking.items import (
    ArtifactFile,
    Description,
    FigureFiles,
    Item,
    Param,
    TableRows,
    Value,
)
from srs_eval.tracking.tracker import RunInfo, Tracker, sweep_id, tracked
from srs_eval.tuning.search import Found, written

if TYPE_CHECKING:
    from hydra_plugins.srs_eval_optuna.optuna_sweeper import OptunaSweeper

OVERLAY = Path("experiment") / "best.yaml"
_STATES = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}


@dataclass(frozen=True, slots=True)
class Overlay:
    """The file of the best configuration, and the command that uses it."""

    file: Path
    words: Sequence[str]  # The searched settings, as overrides
    command: str  # The command that uses the file


@dataclass(frozen=True)
class Ending:
    """The result of a search with its files."""

    found: Found
    meaning: str  # Description of the value of a trial
    best: FrozenTrial
    config: DictConfig  # The configuration of the best trial
    overlay: Overlay
    figures: Mapping[str, list[Path]]  # Files of each figure


def write_best(
    asking: OptunaSweeper, found: Found, best: FrozenTrial, config: DictConfig, meaning: str
) -> Overlay:
    """Write the best trial, of a configuration, as ``experiment/best.yaml``.

    The file has the searched settings and all other settings of the same groups; settings of other
    groups are in the command in its first comment. `meaning` describes the value of a trial.
    """
    choices = config.hydra.runtime.choices
    searched = found.space.searched_words(best.params)
    tops = {_top(name) for name in searched}
    ours = [word for name, word in found.space.fixed.items() if _top(name) in tops]
    others = [
        word
        for name, word in found.space.fixed.items()
        if _top(name) not in {*tops, *asking.search_only, *found.options.may_change}
    ]
    place = "experiment=best" if "experiment" in choices else "+experiment=best"
    command = f"{asking.command} --config-dir {shlex.quote(str(found.folder))} {place}"
    command = " ".join([command, *map(shlex.quote, others)])
    head = [
        "# @package _global_",
        f"# {command}",
        f"# Trial {best.number}, the best of {len(found.trials)}:",
        f"# {meaning}: {written(best.value)}.",
    ]
    content = _content([*ours, *searched.values()], tops, choices, asking.loader)
    file = found.folder / OVERLAY
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(head) + "\n" + OmegaConf.to_yaml(content), encoding="utf-8")
    return Overlay(file, list(searched.values()), command)


def _content(
    words: Sequence[str],
    tops: set[str],
    choices: Mapping[str, str | None],
    loader: ConfigLoader,
) -> dict[str, Any]:
    """Return the content of the file: options in its defaults, values below their keys."""
    content: dict[str, Any] = {}
    groups = [group for group in choices if group in tops and choices[group] is not None]
    if groups:
        content["defaults"] = [{f"override /{group}": choices[group]} for group in groups]
    values = OmegaConf.create()
    for override in OverridesParser.create(config_loader=loader).parse_overrides(list(words)):
        name = override.key_or_group
        if name not in choices and not override.is_delete():
            value = override.value()
            plain = value.text if isinstance(value, QuotedString) else value
            OmegaConf.update(values, name, plain, force_add=True)
    found: Any = OmegaConf.to_container(values)
    return {**content, **found}


def _top(name: str) -> str:
    return name.split(".")[0].split("@")[0]


def counts(found: Found) -> str:
    """Count the trials by how they ended."""
    parts = [f"{n} {name}" for state, name in _STATES.items() if (n := found.count(state))]
    return f"{len(found.trials)}: {', '.join(parts)}" if parts else "0"


def told(ending: Ending) -> str:
    """Format the summary: trials, best value, and files."""
    return facts(
        {
            "trials": counts(ending.found),
            "best": f"trial {ending.best.number}: {ending.meaning}: {written(ending.best.value)}\n"
            + " ".join(ending.overlay.words),
            "overlay": str(ending.overlay.file),
            "use it": ending.overlay.command,
            "figures": str(next(iter(ending.figures.values()))[0].parent),
        }
    )


def times_told(found: Found) -> str:
    """Compare the best trials of each time, if trials predict at different times; else ""."""
    sign = 1 if found.options.direction == "minimize" else -1
    complete = [trial for trial in found.trials if trial.state == TrialState.COMPLETE]
    best: dict[str, FrozenTrial] = {}
    for trial in sorted(complete, key=lambda trial: sign * (trial.value or 0.0)):
        for file in found.folder.glob(f"{trial.number}_*/{SUMMARY}"):
            summary = json.loads(file.read_text(encoding="utf-8"))
            best.setdefault(summary.get("when", UNKNOWN), trial)
    if len(best) < 2:
        return ""
    lines = [
        f"{IN_WORDS[when]}: {written(one.value)}, trial {one.number}" for when, one in best.items()
    ]
    return "\n".join(
        [
            "trials predict at different times, the later the better informed; the best of each:",
            *lines,
        ]
    )


def doubts_told(found: Found, best: FrozenTrial) -> str:
    """Return why the best trial may be no better than others; "" if nothing is known to say so."""
    for file in found.folder.glob(f"{best.number}_*/{SUMMARY}"):
        summary = json.loads(file.read_text(encoding="utf-8"))
        for few in too_few(summary.get("reviews", 0), summary.get("forgotten", 0)):
            return f"{few}: trial {best.number} may be best by chance, so keep the defaults"
    return ""


def keep_in_tracker(ending: Ending) -> None:
    """Log the search as a run; the runs of its trials have the same ``sweep_id``."""
    for remark in (times_told(ending.found), doubts_told(ending.found, ending.best)):
        if remark:
            complain(remark)
    choices = ending.config.hydra.runtime.choices
    name = f"sweep of {choices.algo} on {choices.data}"
    tags = {"kind": "sweep", "sweep_id": sweep_id(ending.found.folder), "data": str(choices.data)}
    try:
        options: Any = OmegaConf.to_container(ending.config.tracking, resolve=True)
        tracker = Builder().build(options, Tracker)
        with tracked(tracker, RunInfo(name, tags)):
            tracker.log(_items(ending))
    except SrsEvalError as error:  # the results are in the folder
        complain(str(error))


def _items(ending: Ending) -> list[Item]:
    found, options = ending.found, ending.found.options
    settings = ("n_trials", "metric", "direction", "seed", "sampler", "pruner", "workers")
    best = ending.best
    note = f"**{ending.meaning}: {written(best.value)}**, trial {best.number} of {counts(found)}."
    note = f"{note}\n\n{times_told(found)}\n\n{doubts_told(found, best)}".strip()
    return [
        *(Param(f"sweep.{name}", getattr(options, name)) for name in settings),
        *(Param(f"space.{name}", text) for name, text in found.space.described().items()),
        *(Param(name, value) for name, value in best.params.items()),
        Value(f"best/{options.metric}", float(best.value or 0.0)),
        Value("best/trial", float(best.number)),
        *(Value(f"trials/{name}", float(found.count(state))) for state, name in _STATES.items()),
        TableRows("trials", _table(found)),
        *(FigureFiles(name, files[0], files[1]) for name, files in ending.figures.items()),
        ArtifactFile(ending.overlay.file, "best"),
        Description(f"{note}\n\n```sh\n{ending.overlay.command}\n```"),
    ]


def _table(found: Found) -> dict[str, list[Any]]:
    """Return a table with one row per trial."""
    return {
        "trial": [trial.number for trial in found.trials],
        "state": [_STATES[trial.state] for trial in found.trials],
        found.options.metric: [trial.value for trial in found.trials],
        **{name: [trial.params[name] for trial in found.trials] for name in found.space.searched},
    }
