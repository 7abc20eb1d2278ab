"""One job from start to end: evaluate, save, then show the result as asked for."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from srs_eval import results
from srs_eval.compute.processes import Processes
from srs_eval.errors import FailedAlikeError, Pruned
from srs_eval.nouns.capabilities import misspelt
from srs_eval.results.files import FIGURES, SUMMARY
from srs_eval.results.fit_counts import failures_in_words
from srs_eval.results.kept import KeptParts, has_parts
from srs_eval.results.parts import PARTS, Chunk, chunk_size, cut
from srs_eval.results.result import Result
from srs_eval.results.run import load_run, run_of
from srs_eval.run.ahead import begun, one_at_a_time
from srs_eval.run.drawing import NAMES, Drawing
from srs_eval.run.evaluate import Evaluation
from srs_eval.run.experiment import checked_users, refuse_lookahead
from srs_eval.run.jobs import JobOutcome, JobStatus, Steps, remarks_of
from srs_eval.run.log_items import facts_after, facts_before
from srs_eval.run.plan import Job
from srs_eval.run.report import announcement, percent_text, places, result_text
from srs_eval.run.shards import evaluate_shard, finished_before, require_all, shared_at
from srs_eval.text.console import complain, say
from srs_eval.tracking.tracker import RunInfo, RunLinks, tracked

if TYPE_CHECKING:
    from srs_eval.comparison.baseline import AgainstBaseline

# Worth comparing with any algorithm: a baseline, and those that lead on real logs, in whole and in
# fractional days.
_SUGGESTED = {
    False: ("avg", "fsrs6", "fsrs7", "session_filter"),
    True: ("avg", "fsrs7", "logistic", "session_filter"),
}
# No bar where standard error is no terminal.
_BAR = partial(tqdm, desc="fits", unit="fit", leave=False, disable=None)


def run_job(job: Job) -> Steps[tuple[JobOutcome, Result | None]]:
    """Run a job, and return how it ended and its result; a shard has none of its own.

    Results are on disk before anything is sent anywhere. Once the job has begun, other jobs have
    their turn.
    """
    about = job.about
    if job.checks_algorithm:
        refuse_lookahead(job.experiment.algorithm, about.options["algo"], job.limits.timeout)
    kept = KeptParts(job.run_folder / PARTS, about.stamp, job.parts_above, job.parts)
    if job.shard is not None or (job.resume and not kept.is_begun):
        finished = finished_before(job)
        if finished is not None:
            if job.shard is None:
                kept.remove()  # what a kill has left of its removal
            yield
            say(f"{about.label} was finished before, and no log is read again: {job.run_folder}")
            return JobOutcome(about.label, "ok", "finished before"), finished
    if job.shard is None:
        kept.check(resume=job.resume)
    users = checked_users(job.experiment.source)
    announced = announcement(job, len(users))
    if not job.waits:
        say(announced)
    if job.shard is not None:
        return evaluate_shard(job, job.shard, kept, users, _BAR), None
    if job.is_merge:
        require_all(users, kept, shared_at(job))
    _warn(job)
    # Beside the import of MLflow; but workers must not log to the run that `mlflow run` began.
    if isinstance(job.compute, Processes) and "MLFLOW_RUN_ID" not in os.environ:
        job.compute.prepare(*["srs_eval.plots.figures"] * (job.ahead and job.figures))
    info = RunInfo(about.name, tags=about.tags, folder=job.folder, resumes=job.resume)
    with tracked(job.tracker, info) as run:
        job.tracker.log(facts_before(about))
        (job.folder / SUMMARY).unlink(missing_ok=True)  # before parts of a finished run go
        kept.open(
            resume=job.resume,
            chunk=chunk_size(len(users), getattr(job.compute, "chunk", None)),
        )
        chunks = cut(users, kept.chunk)
        with begun(partial(_carried_out, job, chunks, kept, len(users)), ahead=job.ahead) as ended:
            yield
            if job.waits:
                say(announced)
            before, result, figures = ended()
        if before:
            say(f"{before} of {len(users)} users were done before")
        against = _against_baseline(job, result)
        _show(job, result, against)
        job.tracker.log(facts_after(job, result, figures, against))
        if result.facts.failed:
            run.end = "failed"
    # Only now: if the tracker failed, nothing needs to be fitted again.
    kept.end(chunks if kept.stays(len(users)) else ())
    say()
    if job.is_single:
        say(_where(job, result, run.links, has_figures=bool(figures)))
    return _outcome(job, result, run.links), result


def _warn(job: Job) -> None:
    """Print what a person may have meant otherwise."""
    algo, algorithm = job.about.algo, job.experiment.algorithm
    for problem in misspelt(algorithm):
        complain(f"algo={algo}: {problem}")
    if _in_fractional_days(job) and getattr(algorithm, "for_whole_days", False):
        complain(
            f"algo={algo} predicts by a model made for whole days, and "
            f"protocol={job.experiment.protocol.name} counts fractional days; fsrs7 and logistic "
            "were made for these"
        )


def _carried_out(
    job: Job, chunks: Sequence[Chunk], kept: KeptParts, users: int
) -> tuple[int, Result, dict[str, list[Path]]]:
    """Evaluate, save and draw; return how many users were done before, the result and its files.

    Nothing is printed, and nothing of the whole process is used: jobs that overlap do this in
    threads.
    """
    before, result = _evaluated(job, chunks, kept, users)
    for name, ending in product(NAMES, ("png", "svg")):  # of another run; no other file
        (job.folder / FIGURES / f"{name}.{ending}").unlink(missing_ok=True)
    result = results.save(result, job.folder)
    if not job.figures or not result.complete:
        return before, result, {}
    better = {metric.name: metric.better for metric in job.experiment.panel}
    drawing = Drawing(job.folder, f"{job.about.label} on {job.experiment.source.name}", better)
    return before, result, drawing.elsewhere() if job.ahead else drawing.draw(result)


def _evaluated(
    job: Job, chunks: Sequence[Chunk], kept: KeptParts, users: int
) -> tuple[int, Result]:
    """Evaluate the users that are not yet done; return how many were, and the result."""
    stay, before = job.folder if kept.stays(users) else None, 0
    was_begun = job.resume and has_parts(job.folder)
    evaluation = Evaluation(job.experiment, chunks, kept, job.compute, _BAR, job.trial, job.limits)
    if not job.is_merge:
        try:
            with one_at_a_time if job.overlaps else nullcontext():
                before = evaluation.run()
        except Pruned:
            kept.remove()
            raise
        except FailedAlikeError:
            if was_begun:  # other users may have been done before
                kept.remove_failed(chunks)
            else:
                kept.remove()
            raise
    result = evaluation.result(job.about, stay)
    if stay is not None:
        kept.list_results(chunks)  # before the summary, which calls them a result
    return before, result


def _in_fractional_days(job: Job) -> bool:
    return bool(getattr(job.experiment.protocol, "in_fractional_days", False))


def _against_baseline(job: Job, result: Result) -> AgainstBaseline | None:
    """Compare with the run that was named or, in a sweep, with the first of its jobs."""
    if job.baseline is None and job.sweep_folder is None:
        return None
    from srs_eval.comparison.baseline import first_alike, in_percent  # not for a single run

    run = run_of(result)
    if job.baseline is not None:
        return in_percent(run, load_run(job.baseline))
    other = None if job.sweep_folder is None else first_alike(run, job.sweep_folder)
    return None if other is None else in_percent(run, other)


def _show(job: Job, result: Result, against: AgainstBaseline | None) -> None:
    """Print the result, and how it compares with the baseline; less of one job of many."""
    is_single = job.is_single
    say()
    said = None if job.sweep_folder is None else remarks_of(job.sweep_folder)
    say(result_text(result, job.experiment.panel, brief=not is_single, said=said))
    if against is not None and is_single:
        say()
        say(percent_text(against, result.facts.when))


def _where(job: Job, result: Result, links: RunLinks, *, has_figures: bool) -> str:
    """Return where everything is, and what to do next."""
    folder = job.folder
    suggested = _SUGGESTED[_in_fractional_days(job)]
    compared = ",".join(dict.fromkeys((job.about.algo, *suggested)))
    words = shlex.join(["-m", f"algo={compared}", *job.words])
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


def _outcome(job: Job, result: Result, links: RunLinks) -> JobOutcome:
    status: JobStatus
    facts, status, message = result.facts, "ok", ""
    if facts.failed:
        status, message = "failed", failures_in_words(result.fitted)
    elif not facts.users:
        skipped = [] if facts.coverage is None else facts.coverage.left_out
        status, message = "skipped", "; ".join(each.in_words for each in skipped)
    return JobOutcome(
        job.about.label,
        status,
        message,
        int(status == "failed"),
        run_id=links.run_id,
        ui_command=links.ui_command,
        view_url=links.view_url,
    )
