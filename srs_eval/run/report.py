"""What the command prints about one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from srs_eval.metrics.headline import shown_metrics
from srs_eval.metrics.panel import Panel
from srs_eval.nouns import Fit
from srs_eval.nouns.when import IN_WORDS, when_of
from srs_eval.results.fit_counts import FitCounts, bare_reason, fits_in_words, reason_of
from srs_eval.results.remarks import few_users, sentences, too_few, warnings
from srs_eval.results.result import Result
from srs_eval.results.run import INELIGIBLE, TRAITS, run_of
from srs_eval.results.summary import panel_table
from srs_eval.run.experiment import learns_from_other_users
from srs_eval.run.plan import Job
from srs_eval.run.watching import frame_lines
from srs_eval.text.console import counted, facts, interval
from srs_eval.text.table import Table

if TYPE_CHECKING:
    from srs_eval.comparison.baseline import AgainstBaseline

_REASONS_SHOWN = 5
# What fits are called, by how they ended; the worst first.
_TITLES = {"failed": "failed", "fallback": "fallback", "ok": "note"}


def announcement(job: Job, n_users: int) -> str:
    """Return what will be evaluated, and where the results will be."""
    experiment = job.experiment
    protocol = experiment.protocol
    is_taught = learns_from_other_users(experiment)
    taught = ", after learning from the users of the other folds" if is_taught else ""
    return facts(
        {
            "algorithm": job.about.label,
            "predicts": IN_WORDS[when_of(experiment.algorithm)],
            "data": f"{experiment.source.location}: {counted(n_users, 'user')}",
            "protocol": f"{protocol.name}, version {protocol.version}: "
            f"{counted(protocol.folds, 'fit')} per user{taught}",
            "output": str(job.folder),
        }
    )


def result_text(
    result: Result, panel: Panel, *, brief: bool = False, said: set[str] | None = None
) -> str:
    """Return what the scores rest on, what failed, and the panel with its intervals.

    `brief` leaves out the panel, for one job of many. Remarks in `said`, which the jobs before
    have printed, are only counted; those of this one are added to it.
    """
    users, fits = result.facts.users, result.fitted
    covered = result.facts.coverage
    rests, *others = [result.facts.rests_on]
    if covered is not None:
        # the reasons of failures follow
        rests, *others = covered.sentences(bare=("failed",), reviews=not brief)
        others += [covered.caution] if covered.caution else []
    # of a user who failed as a whole there is no fit
    made = [fit for fit in fits if fit.fold >= 0 or fit.status != "failed"]
    lines = [f"{rests}; fits: {fits_in_words(FitCounts.of(made)) or 'none'}"]
    lines += [f"left out: {count:,} {reason}" for reason, count in result.facts.left_out.items()]
    lines += [
        f"note: {result.facts.label} {TRAITS[trait][1]}"
        for trait in INELIGIBLE
        if getattr(result.facts, trait)
    ]
    notes = result.facts.notes
    remarks = [*others, *(f"note: {note}" for note in notes[:_REASONS_SHOWN])]
    if len(notes) > _REASONS_SHOWN:
        remarks.append(f"note: {len(notes) - _REASONS_SHOWN:,} more in summary.json")
    remarks += _reasons(fits)
    remarks += too_few(result.facts.reviews, result.facts.forgotten) if users else []
    lines += remarks if said is None else _new(remarks, said)
    if users and not brief:
        shown = {metric.name: metric.better for metric in shown_metrics(panel)}
        lines += ["", panel_table(result.facts, shown).write()]
        lines += [few_users(users)] if few_users(users) else []
        run = run_of(result)
        lines += ["", *(f"{remark}." for remark in (*sentences(run), *warnings(run)))]
        lines += [_elsewhere(panel)]
    return "\n".join(lines).rstrip()


def percent_text(against: AgainstBaseline, when: str) -> str:
    """Format the comparison of a run with its baseline."""
    named = f"against {against.baseline.name} ({against.baseline.place})"
    if not against.n_users:
        return f"{named}: there is no user for whom both runs scored the same reviews"
    rows = [
        (percent.metric, f"{percent.difference:+.1f} %", interval(percent.lo, percent.hi, 1))
        for percent in against.percents
    ]
    caption = f"{named}, {against.n_users:,} of {against.of_users:,} users\n"
    earlier = against.baseline.when
    if when != earlier:
        caption += f"predicted {IN_WORDS[when]}, the baseline {IN_WORDS[earlier]}\n"
    return caption + "\n" + Table(["metric", "difference", "99 %"], rows).write()


def _new(remarks: Sequence[str], said: set[str]) -> list[str]:
    """Return the remarks that were not made before, and count the others."""
    new = [remark for remark in remarks if remark not in said]
    known = len(remarks) - len(new)
    said.update(new)
    return new + ([f"{counted(known, 'remark')} as above"] if known else [])


def _reasons(fits: Sequence[Fit]) -> list[str]:
    """Return the reasons and notes of fits, the worst first, and each reason once.

    Skipped ones are not among them: `Coverage` has their reasons.

    Notes of fits that are ok are alike if they begin alike, up to a colon: numbers follow. The
    last of them has learned from most reviews.
    """
    alike: dict[tuple[str, str], list[Fit]] = {}
    for fit in fits:
        if fit.status != "skipped" and (fit.reason or fit.status != "ok"):
            reason = bare_reason(fit)
            kind = reason.split(": ")[0] if fit.status == "ok" else reason
            alike.setdefault((fit.status, kind), []).append(fit)
    groups = sorted(alike.items(), key=lambda group: [*_TITLES].index(group[0][0]))
    shown = []
    for (status, _), same in groups[:_REASONS_SHOWN]:
        fit = same[-1 if status == "ok" else 0]
        more = f" (and {len(same) - 1:,} more)" if len(same) > 1 else ""
        # a user who failed as a whole has no fit
        title = "not evaluated" if status == "failed" and fit.fold < 0 else _TITLES[status]
        lines = [f"{title}: {reason_of(fit)}{more}", *frame_lines(fit)]
        shown.append("\n".join(lines))
    if any(same[0].traceback for _, same in groups[:_REASONS_SHOWN]):
        shown.append("whole tracebacks: the column traceback of fits.parquet")
    others = sum(len(same) for _, same in groups[_REASONS_SHOWN:])
    return shown + ([f"… and {others:,} more, all in fits.parquet"] if others else [])


def _elsewhere(panel: Panel) -> str:
    shown = {metric.name for metric in shown_metrics(panel)}
    more = sum(name.removesuffix("_floor") not in shown for name in panel.names)
    other = f"{more} more metrics, pooled values" if more else "Pooled values"
    return f"{other} and thresholds: summary.json. Each user: scores.parquet."


def places(names: Mapping[str, str | None]) -> str:
    """Format places, leaving out those that are None."""
    return facts({name: place for name, place in names.items() if place})
