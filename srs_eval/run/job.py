"""One job from start to end: evaluate, save, then show the result as asked for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from srs_eval import results
from srs_eval.errors import FailedAlikeError, Pruned
from srs_eval.nouns.capabilities import misspelt
from srs_eval.results.files import FIGURES, PREREG, SUMMARY, whole_file
from srs_eval.results.fit_counts import failures_in_words
from srs_eval.results.kept import KeptParts, has_parts
from srs_eval.results.parts import PARTS, Chunk, chunk_size, cut
from srs_eval.results.result import Result
from srs_eval.results.run import load_run, run_of
from srs_eval.run.evaluate import evaluate_chunks, gathered
from srs_eval.run.experiment import checked_users
from srs_eval.run.jobs import JobOutcome, remarks_of
from srs_eval.run.log_items import facts_after, facts_before
from srs_eval.run.outside import refuse_lookahead
from srs_eval.run.plan import Plan
from srs_eval.run.report import announcement, percent_text, places, result_text
from srs_eval.run.shards import (
    evaluate_shard,
    finished_before,
    require_all,
    shared_at,
)
from srs_eval.text.console import complain, say
from srs_eval.tracking.tracker import RunInfo, RunLinks, tracked

if TYPE_CHECKING:
    from srs_eval.comparison.baseline import AgainstBaseline

_FIGURES = ("calibration", "corp", "roc", "bins", "users", "forgetting", "contributions")
# Worth comparing with any algorithm: a baseline, and those that lead on real logs, in whole and in
# fractional days.
_SUGGESTED = {
    False: ("avg", "fsrs6", "fsrs7", "session_filter"),
    True: ("avg", "fsrs7", "logistic", "session_filter"),
}
# No bar where standard error is no terminal.
_BAR = partial(tqdm, desc="fits", unit="fit", leave=False, disable=None)


@dataclass(frozen=True, slots=True)
class Done:
    """A job that came to its end, and its result; a shard has none."""

    outcome: JobOutcome
    result: Result | None = None


def run_job(plan: Plan) -> Done:
    """Carry out a plan; results are on disk before anything is sent anywhere."""
    about, options = plan.about, plan.options
    if options.checks_algorithm:
        refuse_lookahead(plan.experiment.algorithm, about.options["algo"], options.limits.timeout)
    if options.shard is not None:
        return Done(evaluate_shard(plan, options.shard, _BAR))
    kept = KeptParts(options.folder / PARTS, about.stamp, options.parts_above, options.parts)
    if options.resume and not kept.is_begun:
        finished = finished_before(plan)
        if finished is not None:
            kept.remove()  # what a kill has left of its removal
            say(f"{about.label} was finished before, and no log is read again: {options.folder}")
            return Done(JobOutcome(about.label, "ok", "finished before"), finished)
    kept.check(resume=options.resume)
    users = checked_users(plan.experiment.source)
    say(announcement(plan, len(users)))
    if options.is_merge:
        require_all(users, kept, shared_at(plan))
    for problem in misspelt(plan.experiment.algorithm):
        complain(f"algo={about.algo}: {problem}")
    if _in_fractional_days(plan) and getattr(plan.experiment.algorithm, "for_whole_days", False):
        complain(
            f"algo={about.algo} predicts by a model made for whole days, and "
            f"protocol={plan.experiment.protocol.name} counts fractional days; fsrs7 and logistic "
            "were made for these"
        )
    info = RunInfo(about.name, tags=about.tags, folder=options.folder, resumes=options.resume)
    with tracked(options.tracker, info) as run:
        options.tracker.log(facts_before(about))
        (options.folder / SUMMARY).unlink(missing_ok=True)  # before parts of a finished run go
        kept.open(
            resume=options.resume,
            chunk=chunk_size(len(users), getattr(options.compute, "chunk", None)),
        )
        chunks = cut(users, kept.chunk)
        if options.prereg is not None:
            with whole_file(options.folder / PREREG) as partial_file:
                partial_file.write_bytes(options.prereg.raw)
        result = _evaluated(plan, chunks, kept, len(users))
        _remove_figures(options.folder)
        result = results.save(result, options.folder)
        drawn = draw(plan, result) if options.figures and result.complete else {}
        against = _against_baseline(plan, result)
        _show(plan, result, against)
        options.tracker.log(facts_after(plan, result, drawn, against))
        if result.facts.failed:
            run.end = "failed"
    # Only now: if the tracker failed, nothing needs to be fitted again.
    kept.end(chunks if kept.stays(len(users)) else ())
    say()
    if options.is_single:
        say(_where(plan, result, run.links, has_figures=bool(drawn)))
    links = run.links
    outcome = replace(
        _outcome(plan, result),
        run_id=links.run_id,
        ui_command=links.ui_command,
        view_url=links.view_url,
    )
    return Done(outcome, result)


def draw(plan: Plan, result: Result) -> dict[str, list[Path]]:
    """Draw the figures of a result into the output folder."""
    from srs_eval.plots import figures  # matplotlib: not where nothing is drawn

    scores = result.by_user
    return figures.draw(
        result.predicted.of(result.complete),
        dict(zip(scores.names, scores.values.T, strict=True)),
        {metric.name: metric.better for metric in plan.experiment.panel},
        plan.options.folder / FIGURES,
        fits=result.fitted,
        title=f"{plan.about.label} on {plan.experiment.source.name}",
        note=result.facts.figure_note,
    )


def _evaluated(plan: Plan, chunks: Sequence[Chunk], kept: KeptParts, users: int) -> Result:
    """Evaluate the users that are not yet done, and name the result as the plan does."""
    about, options = plan.about, plan.options
    stay = options.folder if kept.stays(users) else None
    was_begun = options.resume and has_parts(options.folder)
    if not options.is_merge:
        try:
            before = evaluate_chunks(
                plan.experiment,
                chunks,
                options.compute,
                kept,
                _BAR,
                options.trial,
                options.limits,
            )
        except Pruned:
            kept.remove()
            raise
        except FailedAlikeError:
            if was_begun:  # other users may have been done before
                kept.remove_failed(chunks)
            else:
                kept.remove()
            raise
        if before:
            say(f"{before} of {users} users were done before")
    result = gathered(plan.experiment, chunks, kept, stay)
    if stay is not None:
        kept.list_results(chunks)  # before the summary, which calls them a result
    return result.described(about.algo, about.label, about.data, about.tags)


def _in_fractional_days(plan: Plan) -> bool:
    return bool(getattr(plan.experiment.protocol, "in_fractional_days", False))


def _remove_figures(folder: Path) -> None:
    """Remove the figures of another run, and no other file."""
    for name in _FIGURES:
        for ending in ("png", "svg"):
            (folder / FIGURES / f"{name}.{ending}").unlink(missing_ok=True)


def _against_baseline(plan: Plan, result: Result) -> AgainstBaseline | None:
    """Compare with the run that was named or, in a sweep, with the first of its jobs."""
    run, options = run_of(result), plan.options
    if options.baseline is None and options.sweep_folder is None:
        return None
    from srs_eval.comparison.baseline import first_alike, in_percent  # not for a single run

    if options.baseline is not None:
        return in_percent(run, load_run(options.baseline))
    other = None if options.sweep_folder is None else first_alike(run, options.sweep_folder)
    return None if other is None else in_percent(run, other)


def _show(plan: Plan, result: Result, against: AgainstBaseline | None) -> None:
    """Print the result, and how it compares with the baseline; less of one job of many."""
    is_single = plan.options.is_single
    say()
    said = None if plan.options.sweep_folder is None else remarks_of(plan.options.sweep_folder)
    say(result_text(result, plan.experiment.panel, brief=not is_single, said=said))
    if against is not None and is_single:
        say()
        say(percent_text(against, result.facts.when))
    if plan.options.prereg is not None and against is not None and is_single:
        from srs_eval.comparison.judging import verdicts_of  # only with a registration

        say("\n".join(["", *verdicts_of([run_of(result), against.baseline])]))


def _where(plan: Plan, result: Result, links: RunLinks, *, has_figures: bool) -> str:
    """Return where everything is, and what to do next."""
    folder = plan.options.folder
    suggested = _SUGGESTED[_in_fractional_days(plan)]
    compared = ",".join(dict.fromkeys((plan.about.algo, *suggested)))
    words = shlex.join(["-m", f"algo={compared}", *plan.options.words])
    following = f"python -m srs_eval {words}   # compares algorithms"
    return places(
        {
            "scores": str(folder / SUMMARY),
            "figures": str(folder / FIGURES) if has_figures else None,
            "MLflow UI": links.ui_command,
            "this run": links.run_url,
            "all runs": links.view_url,
            "next": following if result.facts.users else None,
        }
    )


def _outcome(plan: Plan, result: Result) -> JobOutcome:
    label, facts = plan.about.label, result.facts
    if facts.failed:
        return JobOutcome(label, "failed", failures_in_words(result.fitted), 1)
    if not facts.users:
        skipped = [] if facts.coverage is None else facts.coverage.left_out
        return JobOutcome(label, "skipped", "; ".join(each.in_words for each in skipped))
    return JobOutcome(label, "ok")
