"""What the trainer, its prior and the number of fits are worth, by version of FSRS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from evaluations import Change, Scored, score
from findings import findings, panels
from matplotlib.figure import Figure
from review_logs import SIMULATED, FirstReviews, logs

from srs_eval.algorithms.fitted import Fitted
from srs_eval.algorithms.fsrs.early import Fsrs1, Fsrs2, Fsrs3
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs5, Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.fsrs.fsrs45 import Fsrs4, Fsrs45
from srs_eval.nouns import EvaluationProtocol, Source
from srs_eval.plots.style import BLUE, GREEN, INK, MUTED, VERMILION
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised
from srs_eval.protocol.srs_benchmark import SrsBenchmarkRefit
from srs_eval.run.study import Findings

SIZES = (250, 1_000, 4_000, 12_000)
FEWEST = 30  # scored reviews of a user
FRACTIONS = "fractional days"
VERSIONS: Mapping[str, type[Fitted]] = {
    "FSRS v1": Fsrs1,
    "FSRS v2": Fsrs2,
    "FSRS v3": Fsrs3,
    "FSRS v4": Fsrs4,
    "FSRS-4.5": Fsrs45,
    "FSRS-5": Fsrs5,
    "FSRS-6": Fsrs6,
    "FSRS-7": Fsrs7,
    f"FSRS-7, {FRACTIONS}": Fsrs7,
}
QUICK = ("FSRS-5", "FSRS-6", f"FSRS-7, {FRACTIONS}")
# Each version with the one before; FSRS-7 in its own clock.
STEPS = (
    ("FSRS-4.5", "FSRS v4"),
    ("FSRS-5", "FSRS-4.5"),
    ("FSRS-6", "FSRS-5"),
    (f"FSRS-7, {FRACTIONS}", "FSRS-6"),
    ("FSRS-7", "FSRS-6"),
)
# Versions without a prior of their own.
EARLY = ("FSRS v1", "FSRS v2", "FSRS v3")
PUBLIC, NEWTON = "public trainer", "newton"
PUBLISHED, FIRST = "published", "first stabilities"
LBFGS, UNWEIGHTED = "lbfgs", "newton, no recency"
WAYS: Mapping[str, Mapping[str, Any]] = {
    PUBLISHED: {"fit": "default"},
    FIRST: {"fit": "s0"},
    PUBLIC: {"fit": "reference"},
    LBFGS: {"fit": "lbfgs"},
    NEWTON: {},
    UNWEIGHTED: {"recency": "none"},
}
FITS, OFTEN = 5, 50
Way = tuple[str, int]  # the way to fit, and how often


def evaluated(source: Source, version: str, way: Way) -> Scored:
    """Fit a version in one way to every user with enough scored reviews."""
    name, refits = way
    algorithm = VERSIONS[version](**WAYS[name])
    protocol: EvaluationProtocol = SrsBenchmarkRefit(refits)
    if FRACTIONS in version:
        protocol = SrsBenchmarkEqualised(refits=refits)
    return score(source, algorithm, protocol, fewest=FEWEST)


@dataclass(frozen=True)
class Log:
    """All evaluations of the beginnings of one log, or of the logs of many users."""

    scored: Mapping[tuple[int, str, Way], Scored]

    @property
    def sizes(self) -> list[int]:
        """Numbers of reviews, in ascending order."""
        return sorted({size for size, _, _ in self.scored})

    @property
    def versions(self) -> list[str]:
        """Versions of FSRS."""
        return list(dict.fromkeys(version for _, version, _ in self.scored))

    @property
    def later(self) -> list[str]:
        """Versions from FSRS v4 on."""
        return [version for version in self.versions if version not in EARLY]

    def one(self, version: str, way: str, fits: int = FITS, size: int | None = None) -> Scored:
        """Return one evaluation, by default of the longest beginning."""
        return self.scored[size or self.sizes[-1], version, (way, fits)]

    def change(
        self, version: str, way: str, against: str = PUBLIC, *, size: int | None = None
    ) -> Change | None:
        """Estimate how one way to fit differs from another; None where there is no such way."""
        if (size or self.sizes[-1], version, (way, FITS)) not in self.scored:
            return None
        return self.one(version, way, size=size).less(self.one(version, against, size=size))

    def refit(self, version: str, way: str) -> Change:
        """Estimate how 50 fits differ from 5."""
        return self.one(version, way, OFTEN).less(self.one(version, way))

    def step(self, newer: str, older: str, way: str) -> Change:
        """Estimate how a version differs from another."""
        return self.one(newer, way).less(self.one(older, way))


def evaluated_log(source: Source, versions: Sequence[str]) -> Log | None:
    """Evaluate the beginnings of a source's logs; None if no user has enough scored reviews."""
    logs = {user: source.read(user) for user in source.users()}
    longest = max(len(log) for log in logs.values())
    sizes = [size for size in SIZES if size <= longest]
    scored: dict[tuple[int, str, Way], Scored] = {}
    for size in sizes:
        own = FirstReviews(logs, size)
        for version in versions:
            known = VERSIONS[version].methods
            ways = [(way, FITS) for way, with_ in WAYS.items() if with_.get("fit", NEWTON) in known]
            ways += [(way, OFTEN) for way in (PUBLIC, NEWTON) if size == sizes[-1]]
            for way in ways:
                result = evaluated(own, version, way)
                if result.losses:
                    scored[size, version, way] = result
    return Log(scored) if scored else None


def titles(found: Mapping[str, Log]) -> dict[str, str]:
    """Return what the columns of logs are called: with the size and the number of users."""
    made = {}
    for name, log in found.items():
        users = len(log.one(log.versions[0], PUBLIC).losses)
        people = f", {users} users" if users > 1 else ""
        made[name] = f"{name}, {log.sizes[-1]:,} reviews{people}"
    return made


def newton_table(found: Mapping[str, Log]) -> pd.DataFrame:
    """Return the log loss of the public trainer and what newton differs, by version and log."""
    rows = []
    for version in next(iter(found.values())).versions:
        row: dict[str, object] = {"version": version}
        for name, title in titles(found).items():
            row[f"{title}: {PUBLIC}"] = found[name].one(version, PUBLIC).log_loss
            row[f"{name}: newton - {PUBLIC}"] = found[name].change(version, NEWTON)
        rows.append(row)
    return pd.DataFrame(rows)


def ways_table(found: Mapping[str, Log]) -> pd.DataFrame:
    """Return how each way to fit differs from the public trainer."""
    return pd.DataFrame(
        {"log": title, "version": version}
        | {way: found[name].change(version, way) or "" for way in WAYS if way != PUBLIC}
        for name, title in titles(found).items()
        for version in found[name].versions
    )


def sizes_table(found: Mapping[str, Log]) -> pd.DataFrame:
    """Return by number of reviews how newton differs from the public trainer."""
    rows = []
    for name, log in found.items():
        for version in log.versions:
            row = {"log": name, "version": version}
            for size in SIZES:
                change = log.change(version, NEWTON, size=size)
                row[f"{size:,}"] = "" if change is None else change.starred
            rows.append(row)
    return pd.DataFrame(rows)


def evidence_table(found: Mapping[str, Log]) -> pd.DataFrame:
    """Return the users and their scored reviews by number of reviews."""
    rows = []
    for name, log in found.items():
        row = {"log": name}
        for size in SIZES:
            row[f"{size:,}"] = ""
            if size in log.sizes:
                losses = log.one(log.versions[0], PUBLIC, size=size).losses
                people = f"{len(losses)} user{'s' * (len(losses) > 1)}"
                row[f"{size:,}"] = f"{people}, {sum(map(len, losses)):,} scored"
        rows.append(row)
    return pd.DataFrame(rows)


def refits_table(found: Mapping[str, Log]) -> pd.DataFrame:
    """Return how 50 fits differ from 5 by either trainer, and the trainers with 50."""
    rows = []
    for name, title in titles(found).items():
        log = found[name]
        for version in log.versions:
            row: dict[str, object] = {"log": title, "version": version}
            for way in (PUBLIC, NEWTON):
                row[f"{way}: {OFTEN} - {FITS} fits"] = log.refit(version, way)
            newton, public = (log.one(version, way, OFTEN) for way in (NEWTON, PUBLIC))
            rows.append(row | {f"{OFTEN} fits: newton - {PUBLIC}": newton.less(public)})
    return pd.DataFrame(rows)


def steps_table(found: Mapping[str, Log]) -> pd.DataFrame:
    """Return how each version differs from the one before, by either trainer."""
    return pd.DataFrame(
        {"log": title, "difference": f"{newer} - {older}"}
        | {way: found[name].step(newer, older, way) for way in (PUBLIC, NEWTON)}
        for name, title in titles(found).items()
        for newer, older in STEPS
        if {newer, older} <= set(found[name].versions)
    )


def seconds_table(log: Log) -> pd.DataFrame:
    """Return milliseconds of processor time per fit, packing included."""
    rows = []
    for version in log.versions:
        row: dict[str, object] = {"version": version}
        for way in (*((way, FITS) for way in WAYS), (PUBLIC, OFTEN), (NEWTON, OFTEN)):
            key = (log.sizes[-1], version, way)
            title = way[0] + (f", {way[1]} fits" if way[1] != FITS else "")
            own = log.scored[key].fits.values() if key in log.scored else ()
            seconds = [fit.seconds for fits in own for fit in fits]
            row[title] = 1000 * np.mean(seconds) if seconds else np.nan
        rows.append(row)
    return pd.DataFrame(rows).drop(columns=PUBLISHED)


def draw(found: Mapping[str, Log]) -> Figure:
    """Draw what other fits differ from the public trainer with 5, for each log and version."""
    versions = next(iter(found.values())).later
    names = titles(found)
    title = "What trainers and refits change in FSRS v4 to 7 (99 % intervals, left is better)"
    size = 2.4 + 2.8 * len(found), 1.8 + 0.5 * len(versions)
    with panels(*size, len(found), title, sharey=True) as (figure, every):
        for axes, (name, log) in zip(every, found.items(), strict=True):
            for place, version in enumerate(versions):
                shown = (
                    ("newton, 5 fits", log.one(version, NEWTON), BLUE, "o"),
                    ("newton, 50 fits", log.one(version, NEWTON, OFTEN), GREEN, "s"),
                    ("public trainer, 50 fits", log.one(version, PUBLIC, OFTEN), VERMILION, "^"),
                )
                for nth, (label, scored, colour, marker) in enumerate(shown):
                    change = scored.less(log.one(version, PUBLIC))
                    at = place + 0.24 * (nth - 1)
                    axes.hlines(at, *change.interval(), color=colour, linewidth=1.4)
                    own = None if place else label
                    axes.plot(change.mean, at, marker, color=colour, markersize=5, label=own)
            axes.axvline(0, color=INK, linewidth=0.8)
            for edge in range(1, len(versions)):
                axes.axhline(edge - 0.5, color=MUTED, linewidth=0.3)
            axes.set_title(names[name].replace(", ", "\n", 1), fontsize=10)
            axes.set_xlabel("log loss - public trainer, 5 fits")
        every[0].set_yticks(range(len(versions)), versions)
        every[0].invert_yaxis()
        figure.legend(*every[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def run(options: SimpleNamespace) -> Findings:
    """Fit every version in every way to the beginnings of every log."""
    sources, left_out = logs(
        options, small=(3, 1_500), full=(options.simulated, 6_000), size_scale=1
    )
    versions = QUICK if options.small else tuple(VERSIONS)
    evaluations = {name: evaluated_log(source, versions) for name, source in sources.items()}
    found = {name: log for name, log in evaluations.items() if log is not None}
    tables = {
        "newton": newton_table(found),
        "evidence": evidence_table(found),
        "ways": ways_table(found),
        "sizes": sizes_table(found),
        "refits": refits_table(found),
        "steps": steps_table(found),
    }
    if not options.small:  # times differ from computer to computer
        tables["seconds"] = seconds_table(found[SIMULATED])
    every = [log.change(version, NEWTON) for log in found.values() for version in log.later]
    return findings(
        "trainers_and_refits",
        tables,
        {"trainers": draw(found)},
        _words(found),
        metrics={"newton_better": float(np.mean([one.mean < 0 for one in every if one]))},
        left_out=left_out,
        formats=dict.fromkeys(tables.get("seconds", {}), ".1f"),
    )


def counted(changes: Sequence[Change | None], where: str = "") -> str:
    """Return the range of differences, and how many are significantly better and worse."""
    found = [change for change in changes if change is not None]
    means = [change.mean for change in found]
    better = sum(change.settled and change.mean < 0 for change in found)
    worse = sum(change.settled and change.mean > 0 for change in found)
    span = f"{min(means):+.4f}" + (f" to {max(means):+.4f}" if len(means) > 1 else "")
    on = f" on {where}" if where else ""
    return f"{span}{on} (of {len(found)}, {better} significantly better, {worse} worse)"


def _words(found: Mapping[str, Log]) -> dict[str, object]:
    """Return what the template says."""

    def over_logs(change: Callable[[Log, str], Change | None], versions: Sequence[str] = ()) -> str:
        return ", ".join(
            counted([change(log, each) for each in versions or log.later], name)
            for name, log in found.items()
        )

    def by_log(way: str, against: str = PUBLIC) -> str:
        return over_logs(lambda log, version: log.change(version, way, against))

    by_size = {
        size: [
            log.change(version, NEWTON, size=size)
            for log in found.values()
            for version in log.later
            if size in log.sizes
        ]
        for size in SIZES
    }
    versions = set.union(*(set(log.versions) for log in found.values()))
    steps = []
    for newer, older in STEPS:
        logs = [log for log in found.values() if {newer, older} <= set(log.versions)]
        if logs:
            step = {"newer": newer, "older": older}
            for name, way in (("public", PUBLIC), ("newton", NEWTON)):
                step[name] = counted([log.step(newer, older, way) for log in logs])
            steps.append(step)
    return {
        "by_log": by_log,
        "refits": lambda way: over_logs(lambda log, version: log.refit(version, way)),
        "sizes": ", ".join(
            counted(own, f"the first {size:,} reviews") for size, own in by_size.items() if own
        ),
        "early": over_logs(lambda log, version: log.change(version, NEWTON), EARLY)
        if set(EARLY) <= versions
        else "",
        "steps": steps,
    }
