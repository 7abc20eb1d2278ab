"""One job from start to end: say what will be done, evaluate, save, score, draw, log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from srs_eval.comparison.baseline import AgainstBaseline, first_alike, in_percent
from srs_eval.errors import ConfigError, Pruned
from srs_eval.evaluation.scoring import (
    Evaluation,
    summarise_users,
)
from srs_eval.experiment.cohort import checked_users, evaluate_users
from srs_eval.experiment.jobs import JobOutcome
from srs_eval.experiment.log_items import facts_after, facts_before, run_tags
from srs_eval.experiment.plan import Plan
from srs_eval.experiment.report import percent_text, places, scores_text, told
from srs_eval.nouns import Predictions, User
from srs_eval.results import files, tables
from srs_eval.results.fit_counts import FitCounts
from srs_eval.results.partial import FinishedUsers
from srs_eval.results.run import load_run
from srs_eval.stats.significance import LEVEL
from srs_eval.text.console import facts, say
from srs_eval.tracking.items import Tag
from srs_eval.tracking.tracker import RunEnd, RunInfo, RunLinks

USERS = "users"
_COUNTED_BEFORE = 8
_FIGURES = ("calibration", "corp", "roc", "bins", "users", "forgetting")


def run_job(plan: Plan) -> JobOutcome:
    """Carry out a plan; results are on disk before anything is sent anywhere.

    Raises
    ------
    SrsEvalError
        If nothing could be evaluated, or the tracking store could not be reached.
    OSError
        If the output folder cannot be written to.
    Pruned
        If the search this job is part of does not want its end.
    """
    kept = FinishedUsers(plan.folder / USERS, _stamp(run_tags(plan)))
    if plan.resume and not kept.is_begun and _is_finished(plan):
        kept.remove()  # what a kill has left of its removal
        say(f"{plan.label} was finished before: {plan.folder}")
        return JobOutcome(plan.label, "ok", "finished before")
    kept.check(resume=plan.resume)
    users = checked_users(plan.source)
    say(_announcement(plan, users))
    with _tracked(plan) as run:
        kept.open(resume=plan.resume)
        (plan.folder / files.SUMMARY).unlink(missing_ok=True)  # it marks a finished run
        try:
            scored = evaluate_users(plan, users, kept)
        except Pruned:
            kept.remove()
            raise
        complete = [number for number, user in enumerate(scored) if user.is_complete]
        of_users = partial(kept.predictions, complete)
        evaluation = summarise_users(scored, plan.panel, of_users)
        fingerprint = evaluation.scores.fingerprint
        _remove_results(plan.folder)
        kept.gather(range(len(users)), plan.folder)
        _save(plan, evaluation, fingerprint)
        drawn = _draw(plan, evaluation, of_users()) if plan.figures and complete else {}
        say()
        say(scores_text(plan.panel, evaluation, brief=plan.sweep_id is not None))
        against = _against_baseline(plan)
        if against is not None and plan.sweep_id is None:
            say()
            say(percent_text(against))
        plan.tracker.log(facts_after(plan, evaluation, fingerprint, drawn, against))
        run.end = "failed" if evaluation.count("failed") else "finished"
    # Only now: if the tracker failed, nothing needs to be fitted again.
    kept.remove()
    say()
    if plan.sweep_id is None:
        say(_where(plan, evaluation, run.links, has_figures=bool(drawn)))
    return replace(
        _outcome(plan, evaluation),
        run_id=run.links.run_id,
        ui_command=run.links.ui_command,
        view_url=run.links.view_url,
    )


def _is_finished(plan: Plan) -> bool:
    """Whether this very job has come to its end in this folder before, without a failure."""
    summary = plan.folder / files.SUMMARY
    if not summary.is_file():
        return False
    content = files.read_json(summary)
    if _stamp(content["tags"]) != _stamp(run_tags(plan)):
        raise ConfigError(
            f"resume=true: {plan.folder} holds the results of other settings or other code; "
            "give the same, or another hydra.run.dir"
        )
    return bool(content["failed"] == 0)


def _stamp(tags: Mapping[str, str]) -> str:
    return f"{tags['config_hash']} {tags['code_hash']}"


def _announcement(plan: Plan, users: Sequence[User]) -> str:
    online = " (goes on learning while it is tested)" if plan.algorithm.online else ""
    count = "1 user" if len(users) == 1 else f"{len(users):,} users"
    return facts(
        {
            "algorithm": plan.label + online,
            "data": f"{plan.source.location}: {count}{_reviews(plan, users)}",
            "protocol": f"{plan.protocol.name}, version {plan.protocol.version}: "
            + (
                "1 fit per user"
                if plan.protocol.folds == 1
                else f"{plan.protocol.folds} fits per user"
            ),
            "output": str(plan.folder),
        }
    )


def _reviews(plan: Plan, users: Sequence[User]) -> str:
    """Count the reviews of a few users; of many it would take as long as the work itself."""
    if plan.trial is not None or len(users) > _COUNTED_BEFORE:
        return ""
    with suppress(Exception):  # what cannot be read is told with the fits
        return f", {sum(len(plan.source.read(user)) for user in users):,} reviews"
    return ""


def _remove_results(folder: Path) -> None:
    """Leave nothing of another run in the folder."""
    for name in (files.PREDICTIONS, files.CURVES):
        (folder / name).unlink(missing_ok=True)
    for name in _FIGURES:
        for ending in ("png", "svg"):
            (folder / files.FIGURES / f"{name}.{ending}").unlink(missing_ok=True)


def _save(plan: Plan, evaluation: Evaluation, fingerprint: str) -> None:
    """Write what is small; the summary comes last and marks the run as finished."""
    files.write_fits(plan.folder, evaluation.fits)
    files.write_table(plan.folder / files.SCORES, tables.scores_table(evaluation.scores))
    files.write_json(plan.folder / files.SUMMARY, _summary(plan, evaluation, fingerprint))


def _summary(plan: Plan, evaluation: Evaluation, fingerprint: str) -> dict[str, object]:
    last_of_users = {fit.user: fit for fit in evaluation.fits}.values()
    return {
        "algo": plan.algo,
        "label": plan.label,
        "data": plan.data,
        "protocol": plan.protocol.name,
        "is_validation": bool(getattr(plan.protocol, "is_validation", False)),
        "users": evaluation.users_scored,
        "reviews": evaluation.reviews_scored,
        "forgotten": evaluation.forgotten,
        "fits": len(evaluation.fits),
        "failed": evaluation.count("failed"),
        "fallback": evaluation.count("fallback"),
        "skipped": evaluation.count("skipped"),
        "not_converged": evaluation.not_converged,
        "metrics": {name: asdict(summary) for name, summary in evaluation.summary.items()},
        "thresholds": list(evaluation.thresholds),
        "interval_over": evaluation.interval_over,
        "interval_level": LEVEL,
        "online": plan.algorithm.online,
        "sees_truth": plan.algorithm.sees_truth,
        "pretrained": bool(getattr(plan.algorithm, "pretrained", False)),
        "seed": plan.seed,
        "left_out": dict(evaluation.left_out),
        "notes": [f"user {user}: {note}" for user, note in evaluation.notes],
        "fit_notes": [told(fit) for fit in last_of_users if fit.reason],
        "data_fingerprint": evaluation.data_fingerprint,
        "rows_fingerprint": fingerprint,
        "tags": run_tags(plan),
    }


def _against_baseline(plan: Plan) -> AgainstBaseline | None:
    """Compare with the run that was named or, in a sweep, with the first of its jobs."""
    run = load_run(plan.folder)
    if plan.baseline is not None:
        return in_percent(run, load_run(plan.baseline))
    other = None if plan.sweep_folder is None else first_alike(run, plan.sweep_folder)
    return None if other is None else in_percent(run, other)


def _draw(
    plan: Plan, evaluation: Evaluation, users: Iterable[Predictions]
) -> dict[str, list[Path]]:
    """Draw the figures into the output folder."""
    from srs_eval.plots import figures  # matplotlib: not where nothing is drawn

    scores = evaluation.scores
    return figures.draw(
        users,
        dict(zip(scores.names, scores.values.T, strict=True)),
        {metric.name: metric.better for metric in plan.panel},
        plan.folder / files.FIGURES,
        title=f"{plan.label} on {plan.source.name}",
        note=FitCounts.of_summary(files.read_json(plan.folder / files.SUMMARY)).in_words,
    )


@dataclass
class _TrackedRun:
    """How a run is to end, and once it has, where it can be seen."""

    end: RunEnd = "failed"
    links: RunLinks = field(default_factory=RunLinks)


@contextmanager
def _tracked(plan: Plan) -> Iterator[_TrackedRun]:
    """Begin the tracked run, and end it as what happens inside deserves."""
    plan.tracker.start(
        RunInfo(plan.name, tags=run_tags(plan), folder=plan.folder, resumes=plan.resume)
    )
    run = _TrackedRun()
    try:
        plan.tracker.log(facts_before(plan))
        yield run
    except KeyboardInterrupt:
        run.end = "killed"
        raise
    except Pruned:
        plan.tracker.log([Tag("outcome", "pruned")])
        run.end = "killed"
        raise
    finally:
        # a tracker of somebody else may have nothing to show, and say so by returning nothing
        run.links = plan.tracker.finish(run.end) or RunLinks()


def _where(plan: Plan, evaluation: Evaluation, links: RunLinks, *, has_figures: bool) -> str:
    """Say where everything is, and what one would do next."""
    compare = "python -m srs_eval -m algo=avg,sm2,hlr,fsrs6,lstm compares algorithms"
    return places(
        {
            "scores": str(plan.folder / files.SUMMARY),
            "figures": str(plan.folder / files.FIGURES) if has_figures else None,
            "MLflow UI": links.ui_command,
            "this run": links.run_url,
            "all runs": links.view_url,
            "next": compare if evaluation.users_scored else None,
        }
    )


def _outcome(plan: Plan, evaluation: Evaluation) -> JobOutcome:
    failed = evaluation.count("failed")
    if failed:
        first = next(fit for fit in evaluation.fits if fit.status == "failed")
        reason = f"{failed} of {len(evaluation.fits)} fits failed, the first {told(first)}"
        return JobOutcome(plan.label, "failed", reason, 1)
    if not evaluation.users_scored:
        reason = next(fit.reason for fit in evaluation.fits)
        return JobOutcome(plan.label, "skipped", reason)
    return JobOutcome(plan.label, "ok")
