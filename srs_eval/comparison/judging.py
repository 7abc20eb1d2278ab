"""Verdicts on pre-registered hypotheses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from srs_eval.comparison.compare import compare
from srs_eval.comparison.matching import shared_users
from srs_eval.comparison.prereg import REGIONS, TAG, Prereg, read_prereg
from srs_eval.errors import ConfigError
from srs_eval.results.files import CONFIG, PREREG, SUMMARY
from srs_eval.results.folder import read_config
from srs_eval.results.run import Run
from srs_eval.stats.estimate import Estimate
from srs_eval.text.console import counted, interval
from srs_eval.text.plain import one_line
from srs_eval.text.suggestion import suggestion

# no verdict: the runs are not those that were registered.
Decision = Literal["kept", "refuted", "undecided", "no verdict"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a pre-registered hypothesis."""

    prereg: Prereg  # The hypothesis
    # ``kept``, ``refuted`` or ``undecided``; ``no verdict`` with fewer users than registered, other
    # data, another protocol, or a file that has changed since the run
    decision: Decision
    advantage: Estimate  # Difference of the means by the metric, positive where the model is better
    # Its interval at the registered level
    lo: float
    hi: float
    users: int  # Users with scored reviews, the same in both runs
    # How the runs differ from what was registered; those that prevent a verdict first
    deviations: tuple[str, ...]

    @property
    def in_short(self) -> str:
        """The decision and the number of deviations, such as ``kept, 1 deviation``."""
        count = len(self.deviations)
        return f"{self.decision}, {counted(count, 'deviation')}" if count else self.decision

    @property
    def in_numbers(self) -> str:
        """The advantage with its interval."""
        level = f"{100 * self.prereg.level:g} %"
        return f"{self.advantage.mean:+.4f} {interval(self.lo, self.hi)} at {level}"

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        about = self.prereg
        stop = "" if about.hypothesis.endswith((".", "!", "?")) else "."
        return (
            f"Pre-registered hypothesis: {self.in_short}. {about.hypothesis}{stop} "
            f"Advantage of {about.model} over {about.baseline} in {about.metric}: "
            f"{self.in_numbers}, registered: {about.claim}; {self.users:,} of {about.users:,} users"
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
    several. Runs that are not those that were registered have no verdict. Raise `ConfigError` if no
    single run has the label of the model or of the baseline, or neither has the metric.
    """
    model, baseline = _labelled(prereg, runs, "model"), _labelled(prereg, runs, "baseline")
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
    preventing = [
        *_other_data(prereg, board.n_users, model),
        *(line for run in (model, baseline) for line in _other_options(prereg, run)),
    ]
    decision = "no verdict" if preventing else _decided(prereg, lo, hi)
    deviations = (*preventing, *_deviations(prereg, board.n_users, model))
    return Judgement(prereg, decision, advantage, lo, hi, board.n_users, deviations)


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
    """
    if not _digest(run):
        return None
    prereg, judged = _copy(run), None
    if _label(run) != prereg.model:
        return None
    try:
        judged = judge(prereg, runs)
    except ConfigError:
        judged = None
    return {
        "digest": prereg.digest,
        "decision": judged.in_short if judged else None,
        "verdict": judged.lines if judged else [],
        "content": prereg.content,
    }


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


def _other_data(prereg: Prereg, users: int, model: Run) -> Iterator[str]:
    """Yield why the users, the data or the file are not those that were registered."""
    if users < prereg.users:
        yield f"only {users:,} of {prereg.users:,} users: the stopping rule is not met"
    fingerprint = model.facts.data_fingerprint
    if prereg.fingerprint and not fingerprint.startswith(prereg.fingerprint):
        yield f"data with fingerprint {fingerprint or 'unknown'}, not {prereg.fingerprint}"
    digest = _digest(model)
    if digest and digest != prereg.digest:
        yield f"the file has changed since the run of {model.name}, which has digest {digest[:12]}"


def _other_options(prereg: Prereg, run: Run) -> Iterator[str]:
    """Yield options of a run that are not those that were registered."""
    for key in ("data", "protocol"):
        is_, registered = getattr(run.facts, key), getattr(prereg, key)
        if is_ != registered:
            yield f"{run.name} has {key} {is_ or 'unknown'}, not {registered}"
    if prereg.options:
        for key, found, wanted in prereg.other_options(_options(run)):
            yield f"{run.name} has {key}={found}, not {wanted}"


def _deviations(prereg: Prereg, users: int, model: Run) -> Iterator[str]:
    """Yield deviations that leave a verdict possible."""
    if users > prereg.users:
        yield f"{users:,} users, where {prereg.users:,} were registered"
    if not prereg.fixes_data:
        yield "no seed, path or fingerprint was registered: the data could be chosen later"
    if not _digest(model):
        yield f"{model.name} was run without the pre-registration"
    file = model.place / SUMMARY
    if prereg.date and file.is_file():
        day = f"{datetime.fromtimestamp(file.stat().st_mtime, UTC):%Y-%m-%d}"
        if day < prereg.date:
            yield f"{model.name} was run on {day}, before {prereg.date}"


def _labelled(prereg: Prereg, runs: Sequence[Run], key: str) -> Run:
    """Return the only run with a registered label; of several, that on the registered data."""
    wanted = getattr(prereg, key)
    labels = [_label(run) for run in runs]
    found = [run for run, label in zip(runs, labels, strict=True) if label == wanted]
    where = (prereg.data, prereg.protocol)
    fitting = [run for run in found if (run.facts.data, run.protocol) == where] or found
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise ConfigError(f"{key}={wanted}: {len(fitting)} runs have this label")
    meant = suggestion(wanted, labels, otherwise=f"; there are {', '.join(sorted(set(labels)))}")
    raise ConfigError(f"{key}={wanted}: no run has this label{meant}")


def _label(run: Run) -> str:
    return run.facts.label or run.name


def _options(run: Run) -> Mapping[str, Any]:
    """Return the configuration of a run; an empty one if it is not known."""
    given = run.options
    if given is None and (run.place / CONFIG).is_file():
        given = read_config(run.place)
    return given if isinstance(given, Mapping) else {}


def _digest(run: Run) -> str:
    return str(run.facts.tags.get(TAG, ""))
