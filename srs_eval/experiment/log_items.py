"""What a run logs of an evaluation: a pure generator of items."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, get_args

import numpy as np

from srs_eval.comparison.baseline import AgainstBaseline
from srs_eval.evaluation.scoring import Evaluation, Scores
from srs_eval.experiment.learned_model import learned_model
from srs_eval.experiment.plan import Plan
from srs_eval.metrics.summary import MetricSummary
from srs_eval.nouns import Fit, FitStatus, Part
from srs_eval.results.files import RESULTS
from srs_eval.text.escapes import for_markdown
from srs_eval.tracking.items import (
    ArtifactFile,
    DatasetInfo,
    Description,
    FigureFiles,
    Item,
    Param,
    TableRows,
    Tag,
    Value,
)
from srs_eval.tracking.run_facts import plug_in_versions
from srs_eval.tracking.sections import DECIDING, HEADLINE, section

_LIBRARIES = ("srs-eval", "numpy", "scipy", "torch", "numba")
_USERS_SHOWN = 200
_PARAMETERS_SHOWN = 50


def facts_before(plan: Plan) -> Iterator[Item]:
    """Yield what is known of a run before anything is fitted."""
    for name, value in plan.params.items():
        yield Param(name, value)
    for name, value in run_tags(plan).items():
        yield Tag(name, value)


def run_tags(plan: Plan) -> dict[str, str]:
    """Tags that find the run again."""
    tags = {
        "algo": plan.algo,
        "label": plan.label,
        "data": plan.data,
        "protocol": plan.protocol.name,
        "protocol_version": plan.protocol.version,
        "config_hash": plan.config_hash,
        "code_hash": plan.code_hash,
        "online": str(plan.algorithm.online).lower(),
        "python": platform.python_version(),
        **{f"version.{name}": installed for name in _LIBRARIES if (installed := _version(name))},
        **plug_in_versions(_targets(plan.options)),
        **plan.tags,
    }
    return tags if plan.sweep_id is None else {**tags, "sweep_id": plan.sweep_id}


def facts_after(
    plan: Plan,
    evaluation: Evaluation,
    fingerprint: str,
    figures: Mapping[str, Sequence[Path]],
    against: AgainstBaseline | None = None,
) -> Iterator[Item]:
    """Yield the results of a run: numbers, tables, figures, files.

    Parameters
    ----------
    fingerprint : str
        Digest of the scored reviews.
    figures : mapping of str to sequence of Path
        Files of each figure.
    against : AgainstBaseline, optional
        The run compared with another.
    """
    yield Tag("data_fingerprint", evaluation.data_fingerprint)
    yield Tag("rows_fingerprint", fingerprint)
    for metric in plan.panel:
        summary = evaluation.summary[metric.name]
        yield Value(f"{section(metric)}/{metric.name}", summary.mean_users)
        if metric.name in HEADLINE:
            yield Value(f"users/{metric.name}_low", summary.lo)
            yield Value(f"users/{metric.name}_high", summary.hi)
            yield Value(f"pooled/{metric.name}", summary.pooled)
            yield Value(f"pooled/{metric.name}_low", summary.pooled_lo)
            yield Value(f"pooled/{metric.name}_high", summary.pooled_hi)
    yield from _counts(evaluation)
    if against is not None:
        yield from _against(against)
    yield DatasetInfo(
        name=plan.source.name,
        digest=fingerprint,
        location=_from_anywhere(plan.source.location),
        users=evaluation.users_scored,
        reviews=evaluation.reviews_scored,
        options=_reader(plan.options.get("data", {})),
    )
    yield TableRows("metrics", _metrics_table(plan.panel.names, evaluation.summary))
    if evaluation.thresholds:
        names = evaluation.thresholds[0]
        at = {name: [row[name] for row in evaluation.thresholds] for name in names}
        yield TableRows("thresholds", at)
    yield TableRows("users", _users_table(evaluation.scores))
    yield TableRows("fits", _fits_table(evaluation.fits))
    for name, paths in figures.items():
        by_ending = {path.suffix: path for path in paths}
        yield FigureFiles(name, by_ending[".png"], by_ending.get(".svg"))
    for name in RESULTS:
        if (plan.folder / name).is_file():
            yield ArtifactFile(plan.folder / name, "results")
    if getattr(plan.tracker, "model", False):
        yield from learned_model(plan, evaluation)
    yield Description(describe(plan, evaluation))


def describe(plan: Plan, evaluation: Evaluation) -> str:
    """Say in Markdown what was run and what came of it."""
    rows = [
        f"| {name} | {_cell(s.mean_users)} | {_cell(s.lo)} … {_cell(s.hi)} | {_cell(s.pooled)} "
        f"| {s.n_users} |"
        for name in HEADLINE
        if (s := evaluation.summary.get(name)) is not None
    ]
    fits = ", ".join(
        f"{count} {status}"
        for status in get_args(FitStatus)
        if (count := sum(fit.status == status for fit in evaluation.fits))
    )
    online = " It goes on learning while it is tested." if plan.algorithm.online else ""
    lines = [
        f"**{for_markdown(plan.label)}** on {for_markdown(plan.source.location)}, "
        f"protocol {plan.protocol.name} (version {plan.protocol.version}), "
        f"seed {plan.seed}.{online}",
        "",
        f"{evaluation.reviews_scored:,} scored reviews of "
        f"{evaluation.users_scored} users; fits: {fits}.",
        "",
        f"| metric | mean over users | 99 % over {evaluation.interval_over} | pooled | users |",
        "|---|---:|---:|---:|---:|",
        *rows,
    ]
    if plan.notes:
        lines += ["", plan.notes]
    return "\n".join(lines)


def _targets(options: Any) -> Iterator[str]:
    """Name the class of everything that was built, also of what something is made of."""
    if isinstance(options, Mapping):
        if "_target_" in options:
            yield str(options["_target_"])
        options = list(options.values())
    if isinstance(options, list | tuple):
        for value in options:
            yield from _targets(value)


def _reader(options: Mapping[str, Any]) -> dict[str, Any]:
    """Give what a reader was built of so that it can be built again from another folder."""
    path = options.get("path")
    return {**options, "path": _from_anywhere(path)} if isinstance(path, str) else dict(options)


def _from_anywhere(place: str) -> str:
    """Write a path, or a pattern of paths, that is there in full; leave any other text alone."""
    with suppress(OSError, ValueError, RuntimeError):  # what is no path at all
        path = Path(place).expanduser()
        if place and (path.exists() or (not path.anchor and any(Path().glob(place)))):
            return str(path.absolute())
    return place


def _counts(evaluation: Evaluation) -> Iterator[Item]:
    yield Value("users/n", float(evaluation.users_scored))
    yield Value("users/reviews", float(evaluation.reviews_scored))
    yield Value("users/failed", float(evaluation.count("failed")))
    yield Value("users/fallback", float(evaluation.count("fallback")))
    yield Value("users/skipped", float(evaluation.count("skipped")))
    yield Value("users/not_converged", float(evaluation.not_converged))
    yield Value("cost/fit_seconds", sum(fit.seconds for fit in evaluation.fits))


def _against(against: AgainstBaseline) -> Iterator[Item]:
    """Name the section by the algorithm it is about, so that no chart mixes two baselines."""
    about = f"vs_{against.baseline.summary['algo']}"
    for percent in against.percents:
        yield Value(f"{about}/{percent.metric}_percent", percent.difference)
        if percent.metric == DECIDING:
            yield Value(f"{about}/{percent.metric}_percent_low", percent.lo)
            yield Value(f"{about}/{percent.metric}_percent_high", percent.hi)
    yield Value(f"{about}/users", float(against.n_users))
    yield Tag("baseline", against.baseline.name)
    yield Tag("baseline_config_hash", against.baseline.summary["tags"]["config_hash"])


def _metrics_table(
    names: Sequence[str], summary: Mapping[str, MetricSummary]
) -> dict[str, Sequence[object]]:
    columns = tuple(f.name for f in fields(MetricSummary))
    return {
        "metric": list(names),
        **{column: [getattr(summary[name], column) for name in names] for column in columns},
    }


def _users_table(scores: Scores) -> dict[str, Sequence[object]]:
    """Take an even sample of users, from the first to the last."""
    size = min(len(scores.users), _USERS_SHOWN)
    shown = np.linspace(0, len(scores.users) - 1, size).round().astype(np.int64)
    return {
        "user": [str(scores.users[number]) for number in shown],
        "reviews": scores.reviews[shown].tolist(),
        **{
            name: scores.values[shown, column].tolist()
            for column, name in enumerate(scores.names)
            if name in HEADLINE
        },
    }


def _fits_table(fits: Sequence[Fit]) -> dict[str, Sequence[object]]:
    """Take the last fit of an even sample of users; each parameter is a column."""
    last = list({fit.user: fit for fit in fits}.values())
    size = min(len(last), _USERS_SHOWN)
    sample = [last[n] for n in np.linspace(0, len(last) - 1, size).round().astype(np.int64)]
    rows = [(fit, part) for fit in sample for part in (fit, *fit.parts)]
    shown = [fit for fit, _ in rows]
    count = min(max((len(part.parameters) for _, part in rows), default=0), _PARAMETERS_SHOWN)
    parts = [part.name if isinstance(part, Part) else "" for _, part in rows]
    return {
        "user": [str(fit.user) for fit in shown],
        "fold": [fit.fold for fit in shown],
        **({"part": parts} if any(parts) else {}),
        "status": [fit.status for fit in shown],
        "reason": [fit.reason for fit in shown],
        "seconds": [fit.seconds for fit in shown],
        **{
            f"w{number}": [
                part.parameters[number] if number < len(part.parameters) else None
                for _, part in rows
            ]
            for number in range(count)
        },
    }


def _cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4f}"


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None
