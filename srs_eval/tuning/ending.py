"""The result of a search: overlay, figures, summary, and in srs_eval a run in the tracker."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from srs_eval.tracking import items
from srs_eval.tracking.tracker import RunInfo, Tracker, sweep_id, tracked
from srs_eval.tuning.study import SearchStudy, written

if TYPE_CHECKING:
    from hydra_plugins.srs_eval_optuna.optuna_sweeper import OptunaSweeper

OVERLAY = Path("experiment") / "best.yaml"
_STATES = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """The result of a search with its files."""

    search: SearchStudy
    meaning: str  # Description of the value of a trial
    best: FrozenTrial
    config: DictConfig  # The configuration of the best trial
    command: str  # The command that uses the file of the best configuration
    figures: Mapping[str, list[Path]]  # Files of each figure

    @property
    def overlay(self) -> Path:
        """The file of the best configuration."""
        return self.search.folder / OVERLAY


def write_best(
    asking: OptunaSweeper, search: SearchStudy, best: FrozenTrial, config: DictConfig, meaning: str
) -> str:
    """Write the best trial, of a configuration, as ``experiment/best.yaml``; return its command.

    The file has the searched settings and all other settings of the same groups; settings of other
    groups are in the command in its first comment. `meaning` describes the value of a trial.
    """
    choices, fixed = config.hydra.runtime.choices, search.space.fixed
    searched = search.space.searched_words(best.params)
    tops = {_top(name) for name in searched}
    ours = [word for name, word in fixed.items() if _top(name) in tops]
    known = {*tops, *asking.search_only, *search.options.may_change}
    others = [word for name, word in fixed.items() if _top(name) not in known]
    place = "experiment=best" if "experiment" in choices else "+experiment=best"
    folder = shlex.quote(str(search.folder))
    command = f"{asking.command} --config-dir {folder} {place}"
    command = " ".join([command, *map(shlex.quote, others)])
    head = [
        "# @package _global_",
        f"# {command}",
        f"# Trial {best.number}, the best of {len(search.ended)}:",
        f"# {meaning}: {written(best.value)}.",
    ]
    content = _content([*ours, *searched.values()], tops, choices, asking.loader)
    file = search.folder / OVERLAY
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(head) + "\n" + OmegaConf.to_yaml(content), encoding="utf-8")
    return command


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


def counts(search: SearchStudy) -> str:
    """Count the trials by how they ended."""
    parts = [f"{n} {name}" for name, n in _by_state(search).items() if n]
    return f"{len(search.ended)}: {', '.join(parts)}" if parts else "0"


def _by_state(search: SearchStudy) -> dict[str, int]:
    ended = Counter(_STATES[trial.state] for trial in search.ended)
    return {name: ended[name] for name in _STATES.values()}


def told(ending: Ending) -> str:
    """Format the summary: trials, best value, and files."""
    search, best = ending.search, ending.best
    words = " ".join(search.space.searched_words(best.params).values())
    return facts(
        {
            "trials": counts(search),
            "best": f"trial {best.number}: {ending.meaning}: {written(best.value)}\n{words}",
            "overlay": str(ending.overlay),
            "use it": ending.command,
            "figures": str(next(iter(ending.figures.values()))[0].parent),
        }
    )


def times_told(search: SearchStudy) -> str:
    """Compare the best trials of each time, if trials predict at different times; else ""."""
    best: dict[str, FrozenTrial] = {}
    for trial in search.ranked:
        for summary in _summaries(search, trial):
            best.setdefault(summary.get("when", UNKNOWN), trial)
    if len(best) < 2:
        return ""
    lines = [
        f"{IN_WORDS[when]}: {written(one.value)}, trial {one.number}" for when, one in best.items()
    ]
    first = "trials predict at different times, the later the better informed; the best of each:"
    return "\n".join([first, *lines])


def doubts_told(search: SearchStudy, best: FrozenTrial) -> str:
    """Return why the best trial may be no better than others; "" if nothing is known to say so."""
    for summary in _summaries(search, best):
        for few in too_few(summary.get("reviews", 0), summary.get("forgotten", 0)):
            return f"{few}: trial {best.number} may be best by chance, so keep the defaults"
    return ""


def _summaries(search: SearchStudy, trial: FrozenTrial) -> Iterator[Mapping[str, Any]]:
    for file in search.folder.glob(f"{trial.number}_*/{SUMMARY}"):
        yield json.loads(file.read_text(encoding="utf-8"))


def keep_in_tracker(ending: Ending) -> None:
    """Log the search as a run; the runs of its trials have the same ``sweep_id``."""
    doubts = [times_told(ending.search), doubts_told(ending.search, ending.best)]
    for remark in filter(None, doubts):
        complain(remark)
    choices = ending.config.hydra.runtime.choices
    name = f"sweep of {choices.algo} on {choices.data}"
    tags = {"kind": "sweep", "sweep_id": sweep_id(ending.search.folder), "data": str(choices.data)}
    try:
        options: Any = OmegaConf.to_container(ending.config.tracking, resolve=True)
        tracker = Builder().build(options, Tracker)
        with tracked(tracker, RunInfo(name, tags)):
            tracker.log(_items(ending, doubts))
    except SrsEvalError as error:  # the results are in the folder
        complain(str(error))


def _items(ending: Ending, doubts: Sequence[str]) -> list[items.Item]:
    search, best, options = ending.search, ending.best, ending.search.options
    settings = ("n_trials", "metric", "direction", "seed", "sampler", "pruner", "workers")
    note = f"**{ending.meaning}: {written(best.value)}**, trial {best.number} of {counts(search)}."
    note = "\n\n".join([note, *doubts]).strip()
    return [
        *(items.Param(f"sweep.{name}", getattr(options, name)) for name in settings),
        *(items.Param(f"space.{name}", text) for name, text in search.space.described().items()),
        *(items.Param(name, value) for name, value in best.params.items()),
        items.Value(f"best/{options.metric}", float(best.value or 0.0)),
        items.Value("best/trial", float(best.number)),
        *(
            items.Value(f"trials/{name}", float(number))
            for name, number in _by_state(search).items()
        ),
        items.TableRows("trials", _table(search)),
        *(items.FigureFiles(name, files[0], files[1]) for name, files in ending.figures.items()),
        items.ArtifactFile(ending.overlay, "best"),
        items.Description(f"{note}\n\n```sh\n{ending.command}\n```"),
    ]


def _table(search: SearchStudy) -> dict[str, list[Any]]:
    """Return a table with one row per trial."""
    trials = search.ended
    return {
        "trial": [trial.number for trial in trials],
        "state": [_STATES[trial.state] for trial in trials],
        search.options.metric: [trial.value for trial in trials],
        **{name: [trial.params[name] for trial in trials] for name in search.space.searched},
    }
