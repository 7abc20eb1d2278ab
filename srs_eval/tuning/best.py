"""The best configuration of a search, written as an overlay."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import QuotedString
from omegaconf import OmegaConf
from optuna.trial import FrozenTrial

from srs_eval.tuning.search import Found, written

OVERLAY = Path("experiment") / "best.yaml"


@dataclass(frozen=True, slots=True)
class Overlay:
    """The file of the best configuration, and the command that uses it."""

    file: Path
    words: Sequence[str]  # The searched settings, as overrides
    command: str  # The command that uses the file


def write_best(
    found: Found,
    best: FrozenTrial,
    loader: ConfigLoader,
    *,
    choices: Mapping[str, str | None],
    program: str,
    search_only: Sequence[str],
    meaning: str,
) -> Overlay:
    """Write the best trial as ``experiment/best.yaml``.

    The file has the searched settings and all other settings of the same groups; settings of other
    groups are in the command in its first comment, which begins with `program`. `search_only` are
    first parts of keys that only the search uses, and `meaning` describes the value of a trial.
    """
    searched = found.space.searched_words(best.params)
    tops = {_top(name) for name in searched}
    ours = [word for name, word in found.space.fixed.items() if _top(name) in tops]
    others = [
        word
        for name, word in found.space.fixed.items()
        if _top(name) not in {*tops, *search_only, *found.options.may_change}
    ]
    place = "experiment=best" if "experiment" in choices else "+experiment=best"
    command = f"{program} --config-dir {shlex.quote(str(found.folder))} {place}"
    command = " ".join([command, *map(shlex.quote, others)])
    head = [
        "# @package _global_",
        f"# {command}",
        f"# Trial {best.number}, the best of {len(found.trials)}:",
        f"# {meaning}: {written(best.value)}.",
    ]
    content = _content([*ours, *searched.values()], tops, choices, loader)
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
