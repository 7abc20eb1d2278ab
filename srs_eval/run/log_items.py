"""What a run logs of its result: a pure generator of items."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.evaluation.scoring import Scores
from srs_eval.metrics.headline import HEADLINE
from srs_eval.nouns import Fit, IntArray, Part, Predictions, has_curve
from srs_eval.nouns.predictions import select
from srs_eval.nouns.when import IN_WORDS
from srs_eval.results.files import RESULTS
from srs_eval.results.fit_counts import fits_in_words
from srs_eval.results.parts import PARTS
from srs_eval.results.remarks import sentences, warnings
from srs_eval.results.result import Result
from srs_eval.results.run import TRAITS, run_of
from srs_eval.run.description import RunDescription
from srs_eval.run.plan import Job
from srs_eval.text.escapes import for_markdown
from srs_eval.text.table import Table
from srs_eval.tracking import items
from srs_eval.tracking.items import DECIDING, section

if TYPE_CHECKING:
    from srs_eval.comparison.baseline import AgainstBaseline

# How further values of headline metrics are called, and which they are of their summary.
_OF_HEADLINES = {
    "users/{}_low": "lo",
    "users/{}_high": "hi",
    "pooled/{}": "pooled",
    "pooled/{}_low": "pooled_lo",
    "pooled/{}_high": "pooled_hi",
}
_USERS_SHOWN = 200
_PARAMETERS_SHOWN = 50
_CLOSE = 1e-6  # predictions of a model that is built again


def facts_before(about: RunDescription) -> Iterator[items.Item]:
    """Yield the settings of a run, which are known before anything is fitted."""
    for name, value in about.params.items():
        yield items.Param(name, value)


def facts_after(
    job: Job,
    result: Result,
    figures: Mapping[str, Sequence[Path]],
    against: AgainstBaseline | None = None,
) -> Iterator[items.Item]:
    """Yield the results of a run: numbers, tables, figures by their files, and files."""
    facts, source, panel = result.facts, job.experiment.source, job.experiment.panel
    yield items.Tag("data_fingerprint", facts.data_fingerprint)
    yield items.Tag("rows_fingerprint", facts.rows_fingerprint)
    for metric in panel:
        summary = facts.metrics[metric.name]
        yield items.Value(f"{section(metric)}/{metric.name}", summary.mean_users)
        if metric.name in HEADLINE:
            for form, key in _OF_HEADLINES.items():
                yield items.Value(form.format(metric.name), getattr(summary, key))
    yield items.Value("users/n", float(facts.users))
    yield items.Value("users/reviews", float(facts.reviews))
    for name in ("failed", "fallback", "skipped", "not_converged"):
        yield items.Value(f"users/{name}", float(getattr(facts.fit_counts, name)))
    yield items.Value("cost/fit_seconds", sum(fit.seconds for fit in result.fitted))
    if against is not None:
        yield from _against(against)
    yield items.DatasetInfo(
        name=source.name,
        digest=facts.rows_fingerprint,
        location=_from_anywhere(source.location),
        users=facts.users,
        reviews=facts.reviews,
        options=_reader(job.about.options.get("data", {})),
    )
    rows = [{"metric": name, **asdict(facts.metrics[name])} for name in panel.names]
    yield items.TableRows("metrics", _columns(rows))
    if facts.thresholds:
        yield items.TableRows("thresholds", _columns(facts.thresholds))
    yield items.TableRows("users", _users_table(result.by_user))
    yield items.TableRows("fits", _fits_table(result.fitted))
    for name, paths in figures.items():
        by_ending = {path.suffix: path for path in paths}
        yield items.FigureFiles(name, by_ending[".png"], by_ending.get(".svg"))
    for name in RESULTS:
        if (job.folder / name).is_file():
            yield items.ArtifactFile(job.folder / name, "results")
    if result.predicted.stay_in(job.folder):  # too large to be sent
        here = (job.folder / PARTS).absolute()
        yield items.Tag("parts", str(job.parts or here))
    model = getattr(job.tracker, "model", False)
    if model == "scores":
        yield _scored_model(job, result)
    elif model:
        yield from learned_model(job, result)
    yield items.Description(describe(job, result))


def _scored_model(job: Job, result: Result) -> items.ScoredModel:
    """Return the algorithm with its scores, under the digest of the scored reviews."""
    facts, source = result.facts, job.experiment.source
    means = {name: facts.metrics[name].mean_users for name in HEADLINE if name in facts.metrics}
    return items.ScoredModel(
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
    known = {name: facts.metrics[name] for name in HEADLINE if name in facts.metrics}
    rows = [
        (
            *(name, _cell(s.mean_users), f"{_cell(s.lo)} … {_cell(s.hi)}"),
            *(_cell(s.pooled), s.n_users),
        )
        for name, s in known.items()
    ]
    first = [name for name in ("log_loss", "brier_skill", "smece", "auc") if name in facts.metrics]
    headline = " · ".join(f"{name} **{_cell(facts.metrics[name].mean_users)}**" for name in first)
    headers = ["metric", "mean over users", f"99 % over {facts.interval_over}", "pooled", "users"]
    run = run_of(result)
    caution = "" if facts.coverage is None else facts.coverage.caution
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
        *((f"**{caution}**", "") if caution else ()),
        f"Fits: {fits_in_words(facts.fit_counts)}.",
        "",
        Table(headers, rows).write("markdown"),
        "",
        *(f"- {for_markdown(remark)}" for remark in (*sentences(run), *warnings(run))),
    ]
    if about.notes:
        lines += ["", about.notes]
    return "\n".join(lines)


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


def _against(against: AgainstBaseline) -> Iterator[items.Item]:
    """Yield the comparison in a section per baseline, so that no chart mixes two of them."""
    about = f"vs_{against.baseline.facts.algo}"
    for percent in against.percents:
        yield items.Value(f"{about}/{percent.metric}_percent", percent.difference)
        if percent.metric == DECIDING:
            yield items.Value(f"{about}/{percent.metric}_percent_low", percent.lo)
            yield items.Value(f"{about}/{percent.metric}_percent_high", percent.hi)
    yield items.Value(f"{about}/users", float(against.n_users))
    yield items.Tag("baseline", against.baseline.name)
    yield items.Tag("baseline_config_hash", against.baseline.facts.config_hash)


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Sequence[object]]:
    """Return a table, whose rows have the same keys, by its columns."""
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def _sample(count: int) -> IntArray:
    """Return the numbers of an even sample of so many users."""
    return np.linspace(0, count - 1, min(count, _USERS_SHOWN)).round().astype(np.int64)


def _users_table(scores: Scores) -> dict[str, Sequence[object]]:
    """Return the headline metrics of an even sample of users."""
    shown = _sample(len(scores.users))
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
    sample = [last[n] for n in _sample(len(last))]
    rows = [(fit, part) for fit in sample for part in (fit, *fit.parts)]
    columns = [*zip_longest(*(part.parameters for _, part in rows))][:_PARAMETERS_SHOWN]
    parts = [part.name if isinstance(part, Part) else "" for _, part in rows]
    return {
        "user": [str(fit.user) for fit, _ in rows],
        "fold": [fit.fold for fit, _ in rows],
        **({"part": parts} if any(parts) else {}),
        **{name: [getattr(fit, name) for fit, _ in rows] for name in ("status", "reason")},
        "seconds": [fit.seconds for fit, _ in rows],
        **{f"w{number}": list(column) for number, column in enumerate(columns)},
    }


def _cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4f}"


def learned_model(job: Job, result: Result) -> Iterator[items.Item]:
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
        yield items.Tag("model", f"not kept: {error}")
        return
    about, source = job.about, job.experiment.source
    scores = job.experiment.panel.score(predictions)
    yield items.LearnedModel(
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
    yield items.Tag("model", f"kept: user {last.user}, fold {last.fold}")


def _check(job: Job, result: Result, fit: Fit) -> tuple[bool, Predictions]:
    """Compare the model built again with the one that predicted.

    Return whether its clock counts whole days, and what it has predicted of the reviews after those
    it has learned from.
    """
    from srs_eval.config.rebuild import rebuilt_model  # not where no model is kept

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
