"""What a run logs of its result: a pure generator of items."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from srs_eval.config.rebuild import rebuilt_model
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.evaluation.scoring import Scores
from srs_eval.metrics.headline import HEADLINE
from srs_eval.metrics.summary import MetricSummary
from srs_eval.nouns import Fit, Part, Predictions, has_curve
from srs_eval.nouns.predictions import select
from srs_eval.nouns.when import IN_WORDS
from srs_eval.results.files import PREREG, RESULTS
from srs_eval.results.fit_counts import fits_in_words
from srs_eval.results.parts import PARTS
from srs_eval.results.remarks import sentences, warnings
from srs_eval.results.result import Result
from srs_eval.results.run import TRAITS, run_of
from srs_eval.results.summary import Summary
from srs_eval.run.description import RunDescription
from srs_eval.run.plan import Job
from srs_eval.text.escapes import for_markdown
from srs_eval.text.table import Table
from srs_eval.tracking.items import (
    DECIDING,
    ArtifactFile,
    DatasetInfo,
    Description,
    FigureFiles,
    Item,
    LearnedModel,
    Param,
    ScoredModel,
    TableRows,
    Tag,
    Value,
    section,
)

if TYPE_CHECKING:
    from srs_eval.comparison.baseline import AgainstBaseline

_USERS_SHOWN = 200
_PARAMETERS_SHOWN = 50
_CLOSE = 1e-6  # predictions of a model that is built again


def facts_before(about: RunDescription) -> Iterator[Item]:
    """Yield the settings of a run, which are known before anything is fitted."""
    for name, value in about.params.items():
        yield Param(name, value)


def facts_after(
    job: Job,
    result: Result,
    figures: Mapping[str, Sequence[Path]],
    against: AgainstBaseline | None = None,
) -> Iterator[Item]:
    """Yield the results of a run: numbers, tables, figures by their files, and files."""
    facts, source, panel = result.facts, job.experiment.source, job.experiment.panel
    yield Tag("data_fingerprint", facts.data_fingerprint)
    yield Tag("rows_fingerprint", facts.rows_fingerprint)
    for metric in panel:
        summary = facts.metrics[metric.name]
        yield Value(f"{section(metric)}/{metric.name}", summary.mean_users)
        if metric.name in HEADLINE:
            yield Value(f"users/{metric.name}_low", summary.lo)
            yield Value(f"users/{metric.name}_high", summary.hi)
            yield Value(f"pooled/{metric.name}", summary.pooled)
            yield Value(f"pooled/{metric.name}_low", summary.pooled_lo)
            yield Value(f"pooled/{metric.name}_high", summary.pooled_hi)
    yield from _counts(result)
    if against is not None:
        yield from _against(against)
    yield DatasetInfo(
        name=source.name,
        digest=facts.rows_fingerprint,
        location=_from_anywhere(source.location),
        users=facts.users,
        reviews=facts.reviews,
        options=_reader(job.about.options.get("data", {})),
    )
    yield TableRows("metrics", _metrics_table(panel.names, facts.metrics))
    if facts.thresholds:
        names = facts.thresholds[0]
        at = {name: [row[name] for row in facts.thresholds] for name in names}
        yield TableRows("thresholds", at)
    yield TableRows("users", _users_table(result.by_user))
    yield TableRows("fits", _fits_table(result.fitted))
    for name, paths in figures.items():
        by_ending = {path.suffix: path for path in paths}
        yield FigureFiles(name, by_ending[".png"], by_ending.get(".svg"))
    for name in (*RESULTS, *((PREREG,) if job.prereg else ())):
        if (job.folder / name).is_file():
            yield ArtifactFile(job.folder / name, "results")
    if result.predicted.stay_in(job.folder):  # too large to be sent
        here = (job.folder / PARTS).absolute()
        yield Tag("parts", str(job.parts or here))
    model = getattr(job.tracker, "model", False)
    if model == "scores":
        yield _scored_model(job, result)
    elif model:
        yield from learned_model(job, result)
    yield Description(describe(job, result))


def _scored_model(job: Job, result: Result) -> ScoredModel:
    """Return the algorithm with its scores, under the digest of the scored reviews."""
    facts, source = result.facts, job.experiment.source
    means = {name: facts.metrics[name].mean_users for name in HEADLINE if name in facts.metrics}
    return ScoredModel(
        name=job.about.label,
        options=job.about.options["algo"],
        learned_from=f"{source.name}, protocol {facts.protocol}",
        scores=means,
        dataset=(source.name, facts.rows_fingerprint),
        description=describe(job, result),
    )


def describe(job: Job, result: Result) -> str:
    """Return a description of the run and its headline numbers in Markdown."""
    experiment, about, facts = job.experiment, job.about, result.facts
    rows = [
        (
            *(name, _cell(s.mean_users), f"{_cell(s.lo)} … {_cell(s.hi)}"),
            *(_cell(s.pooled), s.n_users),
        )
        for name in HEADLINE
        if (s := facts.metrics.get(name)) is not None
    ]
    headline = " · ".join(
        f"{name} **{_cell(s.mean_users)}**"
        for name in ("log_loss", "brier_skill", "smece", "auc")
        if (s := facts.metrics.get(name)) is not None
    )
    headers = ["metric", "mean over users", f"99 % over {facts.interval_over}", "pooled", "users"]
    run = run_of(result)
    traits = [" ".join(words) for trait, words in TRAITS.items() if getattr(facts, trait)]
    lines = [
        headline,
        "",
        *(f"{trait}\n" for trait in traits),
        f"**{for_markdown(about.label)}** on {for_markdown(experiment.source.location)}, "
        f"protocol {facts.protocol} (version {experiment.protocol.version}), "
        f"seed {facts.seed}. Predictions are made {IN_WORDS[facts.when]}.",
        "",
        for_markdown(facts.rests_on),
        "",
        *((f"**{caution}**", "") if (caution := _caution(facts)) else ()),
        f"Fits: {fits_in_words(facts.fit_counts)}.",
        "",
        Table(headers, rows).write("markdown"),
        "",
        *(f"- {for_markdown(remark)}" for remark in (*sentences(run), *warnings(run))),
    ]
    if about.notes:
        lines += ["", about.notes]
    return "\n".join(lines)


def _caution(facts: Summary) -> str:
    return "" if facts.coverage is None else facts.coverage.caution


def _reader(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a source so that it can be built again from another folder."""
    path = options.get("path")
    return {**options, "path": _from_anywhere(path)} if isinstance(path, str) else dict(options)


def _from_anywhere(place: str) -> str:
    """Write a path, or a pattern of paths, that is there in full; leave any other text alone."""
    with suppress(OSError, ValueError, RuntimeError):  # what is no path at all
        path = Path(place).expanduser()
        if place and (path.exists() or (not path.anchor and any(Path().glob(place)))):
            return str(path.absolute())
    return place


def _counts(result: Result) -> Iterator[Item]:
    facts, counts = result.facts, result.facts.fit_counts
    yield Value("users/n", float(facts.users))
    yield Value("users/reviews", float(facts.reviews))
    yield Value("users/failed", float(counts.failed))
    yield Value("users/fallback", float(counts.fallback))
    yield Value("users/skipped", float(counts.skipped))
    yield Value("users/not_converged", float(counts.not_converged))
    yield Value("cost/fit_seconds", sum(fit.seconds for fit in result.fitted))


def _against(against: AgainstBaseline) -> Iterator[Item]:
    """Yield the comparison in a section per baseline, so that no chart mixes two of them."""
    about = f"vs_{against.baseline.facts.algo}"
    for percent in against.percents:
        yield Value(f"{about}/{percent.metric}_percent", percent.difference)
        if percent.metric == DECIDING:
            yield Value(f"{about}/{percent.metric}_percent_low", percent.lo)
            yield Value(f"{about}/{percent.metric}_percent_high", percent.hi)
    yield Value(f"{about}/users", float(against.n_users))
    yield Tag("baseline", against.baseline.name)
    yield Tag("baseline_config_hash", against.baseline.facts.config_hash)


def _metrics_table(
    names: Sequence[str], summary: Mapping[str, MetricSummary]
) -> dict[str, Sequence[object]]:
    columns = tuple(f.name for f in fields(MetricSummary))
    return {
        "metric": list(names),
        **{column: [getattr(summary[name], column) for name in names] for column in columns},
    }


def _users_table(scores: Scores) -> dict[str, Sequence[object]]:
    """Return the headline metrics of an even sample of users."""
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
    """Return the last fit of an even sample of users; each parameter is a column."""
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


def learned_model(job: Job, result: Result) -> Iterator[Item]:
    """Yield the model of the first user's last fold, or a tag that says why there is none.

    The model is built from its parameters and must predict what the run has predicted.
    """
    fits = [fit for fit in result.fitted if fit.predicts and fit.fold >= 0]
    last = max((f for f in fits if f.user == fits[0].user), key=lambda f: f.fold, default=None)
    try:
        if last is None:
            raise ConfigError("no fit worked")
        whole_days, predictions = _check(job, result, last)
    except SrsEvalError as error:
        yield Tag("model", f"not kept: {error}")
        return
    about, source = job.about, job.experiment.source
    scores = job.experiment.panel.score(predictions)
    yield LearnedModel(
        name=about.label,
        options=about.options["algo"],
        parameters=last.parameters,
        parts=last.parts,
        whole_days=whole_days,
        learned_from=f"{source.name}, user {last.user}, fold {last.fold}",
        scores={name: scores[name] for name in HEADLINE if name in scores},
        dataset=(source.name, result.facts.rows_fingerprint),
        description=(
            f"**{about.label}**, learned from the first {last.n_train:,} scored reviews of user "
            f"{last.user}. Its scores are those of the {last.n_test:,} reviews after them. "
            f"Source: {source.location}."
        ),
    )
    yield Tag("model", f"kept: user {last.user}, fold {last.fold}")


def _check(job: Job, result: Result, fit: Fit) -> tuple[bool, Predictions]:
    """Compare the model built again with the one that predicted.

    Return whether its clock counts whole days, and what it has predicted of the reviews after those
    it has learned from.
    """
    experiment, label = job.experiment, job.about.label
    log = experiment.source.read(fit.user)
    task = experiment.protocol(log, same_day=experiment.algorithm.same_day)
    options, whole_days = job.about.options["algo"], task.reviews.whole_days
    model = rebuilt_model(options, fit.parameters, fit.parts, whole_days=whole_days)
    if not has_curve(model):
        raise ConfigError(f"{label} has no forgetting curve")
    (fold,) = [fold for fold in task.folds if fold.number == fit.fold]
    saved = result.predicted.read(fit.user, curves=False)
    before = None if saved is None else select(saved, saved.fold == fit.fold)
    again = model.predict(task.reviews, fold.test)
    if (
        before is None
        or before.p.shape != again.shape
        or np.abs(before.p - again).max(initial=0.0) > _CLOSE
    ):
        raise ConfigError(f"{label} predicts otherwise when built from its parameters")
    return whole_days, before
