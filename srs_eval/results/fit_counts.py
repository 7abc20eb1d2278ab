"""How many fits of a run are not what its name says: fallbacks, failures, skipped users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import get_args

from srs_eval.nouns import Fit, FitStatus
from srs_eval.text.console import counted

# Keys of a run's summary, and how tables call such fits.
_SAID = {
    "fallback": "fell back",
    "failed": "failed",
    "skipped": "skipped",
    "not_converged": "did not converge",
}
MARK = "§"


@dataclass(frozen=True, slots=True)
class FitCounts:
    """Counts of fits by how they ended."""

    fits: int = 0  # All fits; 0 where the run does not say
    # Fits replaced by something simpler, fits without predictions because of an error, and fits
    # that were not tried for a stated reason
    fallback: int = 0
    failed: int = 0
    skipped: int = 0
    not_converged: int = 0  # Fits that made predictions, although their optimiser stopped early

    @classmethod
    def of(cls, fits: Sequence[Fit]) -> FitCounts:
        """Count fits."""
        ended = Counter(fit.status for fit in fits)
        stopped_early = sum(fit.predicts and not fit.converged for fit in fits)
        return cls(len(fits), ended["fallback"], ended["failed"], ended["skipped"], stopped_early)

    @property
    def has_exceptions(self) -> bool:
        """Whether any fit ended in another way than planned."""
        return any(getattr(self, name) for name in _SAID)

    @property
    def in_words(self) -> str:
        """Counts above 0, such as ``140 of 145 fits fell back, 1 failed``."""
        said = [f"{n:,} {words}" for name, words in _SAID.items() if (n := getattr(self, name))]
        if not said:
            return ""
        count, _, words = said[0].partition(" ")
        total = f" of {self.fits:,}" if self.fits else ""
        noun = "fit" if (self.fits or count) in (1, "1") else "fits"
        return ", ".join([f"{count}{total} {noun} {words}", *said[1:]])


def explained_counts(runs: Sequence[tuple[str, FitCounts]]) -> str:
    """Explain the mark, with the counts of each named run that has it; "" if none has."""
    alike: dict[str, list[str]] = {}
    for name, counts in runs:
        if counts.has_exceptions:
            alike.setdefault(counts.in_words, []).append(name)
    if not alike:
        return ""
    parts = [
        f"{'every run' if len(names) == len(runs) > 1 else ', '.join(names)}: {words}"
        for words, names in alike.items()
    ]
    return f"{MARK} not every fit went as planned: {'; '.join(parts)}"


def fits_in_words(counts: FitCounts) -> str:
    """Return how many fits there are of each status, such as ``9 ok, 1 failed``."""
    other = {status: getattr(counts, status) for status in get_args(FitStatus) if status != "ok"}
    of_status = {"ok": counts.fits - sum(other.values()), **other}
    return ", ".join(f"{count:,} {status}" for status, count in of_status.items() if count)


def failures_in_words(fits: Sequence[Fit]) -> str:
    """Return how many fits and users failed, and the reason of the first."""
    failed = [fit for fit in fits if fit.status == "failed"]
    # a log that could not be read, or a process that died: there is no fit
    users = {fit.user for fit in failed if fit.fold < 0}
    made = sum(fit.fold >= 0 for fit in failed)
    of_users = len({fit.user for fit in fits})
    said = [f"{made:,} of {counted(len(fits) - len(users), 'fit')} failed"] if made else []
    if users:
        was = "was" if len(users) == 1 else "were"
        said.append(f"{len(users):,} of {counted(of_users, 'user')} {was} not evaluated")
    first = "" if len(failed) == 1 else ", the first"
    return f"{' and '.join(said)}{first}: {reason_of(failed[0])}"


def reason_of(fit: Fit) -> str:
    """Return the reason of a fit, with its user and fold named once."""
    where, reason = _where(fit), bare_reason(fit)
    if not reason:
        return where
    named = reason.split(":\n")[0].split(": ")[0]
    # The file of a user has the user's name already, and a table names the user of a row.
    is_named = PurePath(named).stem == str(fit.user) or named.endswith(f", {where}")
    return reason if fit.fold < 0 and is_named else f"{where}: {reason}"


def _where(fit: Fit) -> str:
    return f"user {fit.user}" + (f", fold {fit.fold}" if fit.fold >= 0 else "")


def bare_reason(fit: Fit) -> str:
    """Return the reason without the user and fold it may begin with."""
    return fit.reason.removeprefix(f"{_where(fit)}: ").removeprefix(f"user {fit.user}: ")
