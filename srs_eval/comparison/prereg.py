"""Pre-registration: a hypothesis that is written down before the runs, and the verdict on it.

A pre-registration is a YAML file. Its digest is in every run that was started with it, so that a
later change of the file is seen. The verdict follows from one interval, of the model's advantage
over the baseline: see `judge`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

import yaml

from srs_eval.comparison.compare import compare, find_run
from srs_eval.comparison.matching import shared_users
from srs_eval.errors import ConfigError
from srs_eval.results.files import PREREG, SUMMARY, reading
from srs_eval.results.run import Run, with_own_names
from srs_eval.stats.estimate import Estimate
from srs_eval.stats.significance import LEVEL
from srs_eval.text.console import interval
from srs_eval.text.plain import one_line
from srs_eval.text.suggestion import suggestion

# Tag of a run that has the digest of its pre-registration.
TAG = "prereg"
Decision = Literal["kept", "refuted", "undecided"]
_LARGEST = 100_000  # bytes
# Advantages for which the hypothesis is true, in units of the smallest difference.
_REGIONS = {
    "better": (1.0, math.inf),
    "not_worse": (-1.0, math.inf),
    "equivalent": (-1.0, 1.0),
}
_CLAIMS = {"better": "at least {}", "not_worse": "above -{}", "equivalent": "within ±{}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prereg:
    """The content of a pre-registration.

    Attributes
    ----------
    hypothesis, stopping_rule : str
        Free text.
    model, baseline : str
        Names of the runs as tables print them, such as ``fsrs6(fit=default)``.
    metric : str
        The metric by which the hypothesis is judged.
    smallest_difference : float
        The smallest difference of the means that matters, above 0.
    users : int
        Number of users at which the stopping rule ends the study.
    data, protocol : str
        Names of the options.
    direction : str
        ``better``: the advantage is at least the smallest difference; ``not_worse``: the model is
        worse by less than that; ``equivalent``: neither is better by that much.
    level : float
        Level of the interval.
    fingerprint : str
        Beginning of the ``data_fingerprint`` of the runs, if known beforehand.
    date : str
        Day of the registration, as in 2026-01-31.
    authors : tuple of str
    digest : str
        SHA-256 of the file.
    raw : bytes
        The file.
    """

    hypothesis: str
    model: str
    baseline: str
    metric: str
    smallest_difference: float
    users: int
    data: str
    protocol: str
    stopping_rule: str
    direction: str = "better"
    level: float = LEVEL
    fingerprint: str = ""
    date: str = ""
    authors: tuple[str, ...] = ()
    raw: bytes = field(default=b"", repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def claim(self) -> str:
        """The advantages for which the hypothesis is true, in words."""
        return _CLAIMS[self.direction].format(f"{self.smallest_difference:g}")

    @property
    def in_words(self) -> dict[str, str]:
        """What was registered, for the terminal."""
        return {
            "hypothesis": self.hypothesis,
            "claim": f"advantage of {self.model} over {self.baseline} in {self.metric} "
            f"{self.claim}, by its interval at {100 * self.level:g} %",
            "users": f"{self.users:,} of {self.data}, protocol {self.protocol}",
            "stopping rule": self.stopping_rule,
            "digest": self.digest,
        }

    @property
    def content(self) -> dict[str, Any]:
        """The values that are not empty, for YAML and JSON."""
        found = {key: getattr(self, key) for key in _KEYS}
        found["authors"] = list(self.authors)
        return {key: value for key, value in found.items() if value not in ("", [])}


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
        but = f", with {len(self.deviations)} deviation(s)" if self.deviations else ""
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


def read_prereg(file: Path) -> Prereg:
    """Read a pre-registration.

    Raises
    ------
    ConfigError
        If it cannot be read, or with every problem of its content.
    """
    with reading(file), file.open("rb") as opened:
        raw = opened.read(_LARGEST + 1)
    if len(raw) > _LARGEST:
        raise ConfigError(f"{file}: has more than {_LARGEST:,} bytes; a page of text is enough")
    try:
        content = yaml.safe_load(raw)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: has no keys; it needs {', '.join(_REQUIRED)}")
    return _prereg(content, raw, f"{file}: ")


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
        prereg = _prereg(stated["content"], b"", "content: ")
    except ConfigError as error:
        return "; ".join(error.problems)
    try:
        found = judge(prereg, runs).decision
    except ConfigError:
        return ""
    return "" if found == stated["decision"] else f"the scores say {found}"


def _prereg(content: Mapping[str, Any], raw: bytes, where: str) -> Prereg:
    """Build a pre-registration, or raise an error with every problem of its content."""
    problems = [
        f"{key}: there is no such key{suggestion(str(key), _KEYS)}"
        for key in map(_shown, content)
        if key not in _KEYS
    ]
    problems += [f"{key}: is missing" for key in _REQUIRED if content.get(key) is None]
    found = {}
    for key, value in content.items():
        if key in _KEYS and value is not None:
            try:
                found[key] = _KEYS[key](value)
            except ValueError as error:
                problems.append(f"{key}: expected {error}, not {_shown(value)}")
    if found.get("model") is not None and found.get("model") == found.get("baseline"):
        problems.append(f"baseline: is the model itself, {_shown(found['model'])}")
    if problems:
        raise ConfigError(*(f"{where}{problem}" for problem in problems))
    return Prereg(**found, raw=raw)


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


def _copy(run: Run) -> Prereg:
    """Read the copy of the pre-registration in the folder of a run."""
    file = run.place / PREREG
    prereg = read_prereg(file)
    if prereg.digest != _digest(run):
        raise ConfigError(f"{file}: is not what the run was started with")
    return prereg


def _decided(prereg: Prereg, lo: float, hi: float) -> Decision:
    least, most = (prereg.smallest_difference * bound for bound in _REGIONS[prereg.direction])
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


def _shown(value: object) -> str:
    """Return a value in a message: short, and nothing of what is nested."""
    if isinstance(value, str | int | float | date):
        return one_line(str(value))[:60] or "an empty text"
    return {dict: "keys", list: "a list"}.get(type(value), type(value).__name__)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("text")
    return one_line(value.strip())


def _number(value: object, low: float, high: float, expected: str) -> float:
    try:
        found = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):  # YAML reads 1e-3 as text
        found = math.nan
    if not low < found < high:
        raise ValueError(expected)
    return found


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("a whole number above 0")
    return value


def _direction(value: object) -> str:
    if value not in _REGIONS:
        raise ValueError(f"one of {', '.join(_REGIONS)}")
    return str(value)


def _day(value: object) -> str:
    try:
        return date.fromisoformat(str(value)).isoformat()
    except ValueError as error:
        raise ValueError("a day such as 2026-01-31") from error


def _names(value: object) -> tuple[str, ...]:
    try:
        return tuple(_text(name) for name in (value if isinstance(value, list) else [value]))
    except ValueError as error:
        raise ValueError("a list of names") from error


_KEYS: Mapping[str, Callable[[Any], Any]] = {
    **{each.name: _text for each in fields(Prereg) if each.name != "raw"},
    "smallest_difference": partial(
        _number, low=0, high=math.inf, expected="a finite number above 0"
    ),
    "users": _count,
    "direction": _direction,
    "level": partial(_number, low=0.5, high=1, expected="a number between 0.5 and 1"),
    "date": _day,
    "authors": _names,
}
_REQUIRED = [each.name for each in fields(Prereg) if each.default is MISSING]
