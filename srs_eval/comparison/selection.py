"""Several settings of one algorithm on the same test reviews: the best of them looks too good."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from srs_eval.results.run import Run
from srs_eval.text.yaml_files import YamlError, read_yaml

TAG = "options_compared_on"
ON_TEST_ROWS = "test_rows"
ON_VALIDATION_ROWS = "validation_rows"
_OVERRIDES = Path(".hydra") / "overrides.yaml"
_CONFIG = Path(".hydra") / "config.yaml"
_MULTIRUN = "multirun.yaml"
# Commas outside quotes and brackets, and functions, make several values of a word.
_NESTED = re.compile(r"'[^']*'|\"[^\"]*\"|\[[^]]*\]|\{[^}]*\}")
_SEVERAL = re.compile(r",|^(?:range|choice|glob|shuffle|sort|tag)\(")
_DEFAULT = "srs_benchmark"
# What belongs to a job rather than to what is compared, or is replaced.
_LEFT_OUT = ("hydra", "protocol", "resume", "name", "notes", "tags", "tracking")
_COMPARED = ("algo", "seed")
_WORD = re.compile(r"[\w.]+=[^\n]*")
_OWN_PROTOCOLS = "srs_eval.protocol."


def chosen_on_test_rows(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Find the algorithms of which several settings were scored on the same test reviews.

    Settings are whatever changes numbers: options, and seeds too. Returned are the runs by
    algorithm, of those with at least two different settings under one protocol that is not made for
    choosing.
    """
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if run.facts.algo and not run.facts.is_validation and run.is_eligible:
            groups.setdefault((run.facts.algo, run.protocol), []).append(run)
    found: dict[str, list[Run]] = {}
    for (algo, _), group in groups.items():
        settings = {run.facts.config_hash for run in group}
        if len(settings - {""}) > 1:
            found.setdefault(algo, []).extend(group)
    return found


def sweeps_settings(sweep_folder: Path) -> bool:
    """Whether a grid search has several settings of an algorithm, or several seeds."""
    words = _inside(sweep_folder / _MULTIRUN, "hydra.overrides.task")
    given = words if isinstance(words, list) else []
    pairs = [str(word).lstrip("+").partition("=") for word in given]
    return any(
        _SEVERAL.search(_NESTED.sub("", value)) is not None
        for key, _, value in pairs
        if key == "seed" or key.startswith("algo.")
    )


def selection_notes(runs: Sequence[Run]) -> list[str]:
    """Warn of each choice among settings by test reviews, with a command that avoids it."""
    return [
        f"{len(group)} settings of {algo} were scored on the same test reviews: the best of them "
        "looks better than it is. Choose by reviews before the test rows, and score the choice "
        f"once: {_validation_command(algo, group)}"
        for algo, group in chosen_on_test_rows(runs).items()
    ]


def _validation_command(algo: str, runs: Sequence[Run]) -> str:
    """Repeat what was asked for, under the protocol that is made for choosing."""
    program = ["python", "-m", "srs_eval", "-m"]
    words_of = [dict(_words(run.place)) for run in runs]
    keys = dict.fromkeys(key for words in words_of for key in words)
    words = [f"algo={algo}"]
    for key in keys:
        values = [
            words[key] if key in words else _configured(run.place, key)
            for run, words in zip(runs, words_of, strict=True)
        ]
        known = list(dict.fromkeys(value for value in values if value is not None))
        chosen = known if key.split(".")[0] in _COMPARED else known[:1]
        words += [f"{key}={','.join(chosen)}"] if key != "algo" else []
    return shlex.join([*program, *words, "protocol=validation", *_base(runs)])


def _configured(folder: Path, key: str) -> str | None:
    """Value that a run had for an option its command does not name."""
    content = _inside(folder / _CONFIG, key) if "." in key else None
    if isinstance(content, bool):
        return str(content).lower()
    return str(content) if isinstance(content, int | float | str) else None


def _words(folder: Path) -> Iterator[tuple[str, str]]:
    """Options that the command of a run named; none where its folder does not tell."""
    content = _inside(folder / _OVERRIDES)
    for word in content if isinstance(content, list) else []:
        # A command that is suggested must not name what is built or run.
        if isinstance(word, str) and _WORD.fullmatch(word) and "_target_" not in word:
            key, _, value = word.partition("=")
            if key.split(".")[0] not in _LEFT_OUT:
                yield key, value


def _base(runs: Sequence[Run]) -> list[str]:
    """Return the protocol of the final score, if it is not the default."""
    if {run.protocol for run in runs} == {_DEFAULT}:
        return []
    protocol = _inside(runs[0].place / _CONFIG, "protocol")
    if not isinstance(protocol, Mapping):
        return []
    folds = protocol.get("user_folds")
    protocol = {name: value for name, value in protocol.items() if name != "user_folds"}
    target = str(protocol.get("_target_"))
    plain = all(isinstance(value, int | float | str) for value in protocol.values())
    if not target.startswith(_OWN_PROTOCOLS) or not plain:
        return []
    inside = ",".join(f"{key}:{value}" for key, value in protocol.items())
    base = [f"protocol.base={{{inside}}}"]
    return [*base, f"protocol.user_folds={folds}"] if isinstance(folds, int) else base


def _inside(file: Path, key: str = "") -> Any:
    """Return what a file of Hydra has under a key; None where it cannot be read, or has no such."""
    try:
        content = read_yaml(file)
    except (OSError, YamlError):
        return None
    for name in filter(None, key.split(".")):
        content = content.get(name) if isinstance(content, Mapping) else None
    return content
