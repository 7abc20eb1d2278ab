"""Outcomes of cases, counted in one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

OUTCOMES = {
    "clear error": "refused with a message of a few lines",
    "recorded": "interrupted or failed on record, and finished to the same bits afterwards",
    "accepted": "worked",
    "traceback": "a Python error reached the person, or the interpreter died",
    "hang": "no end within the time limit",
    "lost": "work was lost, or could not be finished, or a store could not be opened",
    "wrong": "silently wrong: other bits, rows unaccounted for, changed sources, RUNNING runs",
}
BAD = ("traceback", "hang", "lost", "wrong")
# A message that is longer is no clear one.
LONGEST_MESSAGE = 4_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one case ended, and what shows it."""

    outcome: str
    detail: str = ""

    def __post_init__(self) -> None:
        """Check the outcome."""
        if self.outcome not in OUTCOMES:
            raise ValueError(self.outcome)


class Found(Exception):
    """What was found of a case before its end, as a verdict."""

    def __init__(self, outcome: str, *problems: str) -> None:
        super().__init__(outcome)
        self.verdict = Verdict(outcome, first_problem(problems))


@dataclass(frozen=True, slots=True)
class Case:
    """One case, which its kind, seed and number say all about."""

    kind: str
    seed: int
    number: int

    @property
    def random(self) -> Random:
        """A generator that belongs to this case alone."""
        return Random(f"{self.kind} {self.seed} {self.number}")

    @property
    def name(self) -> str:
        """Folder of the case."""
        return f"{self.kind.replace(' ', '_')}_{self.seed}_{self.number}"

    @property
    def again(self) -> str:
        """Command that repeats it."""
        return f'python tests/faults/campaign.py --case "{self.kind} {self.seed} {self.number}"'


@dataclass(slots=True)
class Tally:
    """What was tried, and what came out."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    bad: list[tuple[Case, Verdict]] = field(default_factory=list)

    def add(self, case: Case, verdict: Verdict) -> None:
        """Count a case."""
        self.counts.setdefault(case.kind, Counter())[verdict.outcome] += 1
        if verdict.outcome in BAD:
            self.bad.append((case, verdict))

    def table(self) -> str:
        """Format the counts as a Markdown table."""
        header = ["kind", "tried", *OUTCOMES]
        rows = [self._row(kind, counter) for kind, counter in sorted(self.counts.items())]
        total: Counter[str] = sum(self.counts.values(), Counter())
        rows.append(self._row("all", total))
        lines = [header, ["---", *["--:"] * (len(header) - 1)], *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def problems(self) -> str:
        """List the bad cases, each with the command that repeats it."""
        lines = []
        for case, verdict in self.bad:
            lines += [f"{verdict.outcome}: {verdict.detail}", f"    {case.again}"]
        return "\n".join(lines)

    def _row(self, kind: str, counter: Counter[str]) -> Sequence[str]:
        return [kind, f"{counter.total():,}", *(f"{counter[outcome]:,}" for outcome in OUTCOMES)]


def right(problems: Sequence[str], outcome: str = "accepted") -> Verdict:
    """Return that outcome unless there are problems."""
    return Verdict("wrong", first_problem(problems)) if problems else Verdict(outcome)


def first_problem(problems: Sequence[str]) -> str:
    """Join what was found, so that a line holds it."""
    return "; ".join(" ".join(problem.split()) for problem in problems)[:600]
