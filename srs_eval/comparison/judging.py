"""Verdicts on pre-registered hypotheses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from srs_eval.comparison.compare import compare, find_run
from srs_eval.comparison.matching import shared_users
from srs_eval.comparison.prereg import REGIONS, TAG, Prereg, prereg_of, read_prereg
from srs_eval.errors import ConfigError
from srs_eval.results.files import PREREG, SUMMARY
from srs_eval.results.run import Run, with_own_names
from srs_eval.stats.estimate import Estimate
from srs_eval.text.console import interval
from srs_eval.text.plain import one_line

Decision = Literal["kept", "refuted", "undecided"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a pre-registered hypothesis.

    Attributes
    ----------
    prereg : Prereg
        The hypothesis.
    decision : str
        ``kept``, ``refuted`` or ``undecided``.
    advantage : Estimate
        Difference of the means by the metric, positive where the model is better.
    lo, hi : float
        Its interval at the registered level.
    users : int
        Users that both runs scored on the same reviews.
    deviations : tuple of str
        How the runs differ from what was registered.
    """

    prereg: Prereg
    decision: Decision
    advantage: Estimate
    lo: float
    hi: float
    users: int
    deviations: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        about = self.prereg
        count = len(self.deviations)
        but = f", with {count} deviation{'s' * (count > 1)}" if count else ""
        return (
            f"Pre-registered hypothesis {self.decision}{but}: {about.hypothesis} "
            f"Advantage of {about.model} over {about.baseline} in {about.metric}: "
            f"{self.advantage.mean:+.4f} {interval(self.lo, self.hi)} at {100 * about.level:g} %, "
            f"registered: {about.claim}; {self.users:,} of {about.users:,} users"
        )

    @property
    def lines(self) -> list[str]:
        """The verdict and each deviation in words."""
        return [self.sentence, *(f"Deviation: {one}" for one in self.deviations)]


def judge(prereg: Prereg, runs: Sequence[Run]) -> Judgement:
    """Judge a hypothesis by the runs of its model and its baseline.

    The hypothesis is a region of advantages: at least the smallest difference (``better``), and so
    on. It is kept if the interval of the advantage lies in the region, refuted if it lies outside,
    and undecided otherwise. One comparison was registered, so the interval is not adjusted for
    several.

    Raises
    ------
    ConfigError
        If no single run has the name of the model or of the baseline, or neither has the metric.
    """
    named = with_own_names(runs)
    model, baseline = (
        runs[find_run(named, name, about)]
        for about, name in (("model", prereg.model), ("baseline", prereg.baseline))
    )
    shared = shared_users([baseline, model])
    if not shared:
        raise ConfigError(
            f"{prereg.model} and {prereg.baseline} scored the same reviews of no user"
        )
    verdict = compare([baseline, model], metric=prereg.metric, users=shared)
    board = verdict.leaderboard
    # runs with the same predictions are one
    difference = board.pairs[len(verdict.runs) - 1][0]
    advantage = difference if verdict.better == "higher" else difference.mirrored()
    lo, hi = advantage.interval(prereg.level)
    deviations = [
        *_other_rows(prereg, board.n_users, model),
        *(line for run in (model, baseline) for line in _other_run(prereg, run)),
    ]
    return Judgement(
        prereg, _decided(prereg, lo, hi), advantage, lo, hi, board.n_users, tuple(deviations)
    )


def verdicts_of(runs: Sequence[Run]) -> list[str]:
    """Return the verdicts on the hypotheses that runs were started with, in words.

    The content is that of the copies in the folders of the runs.
    """
    started_with = {digest: run for run in runs if (digest := _digest(run))}
    found = []
    for run in started_with.values():
        try:
            found += judge(_copy(run), runs).lines
        except ConfigError as error:
            found.append(f"No verdict on the pre-registered hypothesis: {one_line(str(error))}")
    return found


def about_prereg(run: Run, runs: Sequence[Run]) -> dict[str, Any] | None:
    """Return what a submission says of the pre-registration that is about its run.

    The verdict is that of `runs`, among them the run; without one of the baseline there is none.

    Raises
    ------
    ConfigError
        If the copy in the run's folder cannot be used.
    """
    if not _digest(run):
        return None
    prereg, judged = _copy(run), None
    try:
        if runs[find_run(with_own_names(runs), prereg.model, "model")] is not run:
            return None
        judged = judge(prereg, runs)
    except ConfigError:
        if run.name != prereg.model:
            return None
    return {
        "digest": prereg.digest,
        "decision": judged.decision if judged else None,
        "verdict": judged.lines if judged else [],
        "content": prereg.content,
    }


def stated_verdict_problem(stated: Mapping[str, Any], runs: Sequence[Run]) -> str:
    """Return what is wrong with the verdict that a submission states.

    Parameters
    ----------
    stated : mapping
        As from `about_prereg`.
    runs : sequence of Run
        All runs on the same reviews; "" is returned if model or baseline are not among them.
    """
    try:
        prereg = prereg_of(stated["content"], b"", "content: ")
    except ConfigError as error:
        return "; ".join(error.problems)
    try:
        found = judge(prereg, runs).decision
    except ConfigError:
        return ""
    return "" if found == stated["decision"] else f"the scores say {found}"


def _copy(run: Run) -> Prereg:
    """Read the copy of the pre-registration in the folder of a run."""
    file = run.place / PREREG
    prereg = read_prereg(file)
    if prereg.digest != _digest(run):
        raise ConfigError(f"{file}: is not what the run was started with")
    return prereg


def _decided(prereg: Prereg, lo: float, hi: float) -> Decision:
    least, most = (prereg.smallest_difference * bound for bound in REGIONS[prereg.direction])
    if least <= lo and hi <= most:
        return "kept"
    return "refuted" if hi < least or lo > most else "undecided"


def _other_rows(prereg: Prereg, users: int, run: Run) -> Iterator[str]:
    if users < prereg.users:
        yield f"only {users:,} of {prereg.users:,} users: the stopping rule is not met"
    elif users > prereg.users:
        yield f"{users:,} users, where {prereg.users:,} were registered"
    fingerprint = str(run.summary.get("data_fingerprint", ""))
    if prereg.fingerprint and not fingerprint.startswith(prereg.fingerprint):
        yield f"data with fingerprint {fingerprint or 'unknown'}, not {prereg.fingerprint}"


def _other_run(prereg: Prereg, run: Run) -> Iterator[str]:
    for key in ("data", "protocol"):
        is_, registered = getattr(run, key), getattr(prereg, key)
        if is_ != registered:
            yield f"{run.name} has {key} {is_ or 'unknown'}, not {registered}"
    digest = _digest(run)
    if not digest:
        yield f"{run.name} was run without the pre-registration"
    elif digest != prereg.digest:
        yield f"the file has changed since the run of {run.name}, which has digest {digest[:12]}"
    file = run.place / SUMMARY
    if prereg.date and file.is_file():
        day = f"{datetime.fromtimestamp(file.stat().st_mtime, UTC):%Y-%m-%d}"
        if day < prereg.date:
            yield f"{run.name} was run on {day}, before {prereg.date}"


def _digest(run: Run) -> str:
    return str(run.summary.get("tags", {}).get(TAG, ""))
