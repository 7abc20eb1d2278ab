"""Outcomes of cases, counted in one table."""

from collections import Counter
from dataclasses import dataclass, field
from random import Random

# What each means: docs/reliability.md.
BAD = ("traceback", "hang", "lost", "wrong")
OUTCOMES = ("clear error", "recorded", "accepted", *BAD)
# A message that is longer is no clear one.
LONGEST_MESSAGE = 4_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one case ended, and what shows it."""

    outcome: str
    detail: str = ""


class Found(Exception):
    """What was found of a case before its end, as a verdict."""

    def __init__(self, outcome, *problems):
        super().__init__(outcome)
        self.verdict = Verdict(outcome, first_problem(problems))


@dataclass(frozen=True, slots=True)
class Case:
    """One case, which its kind, seed and number say all about."""

    kind: str
    seed: int
    number: int

    def __str__(self):
        return f"{self.kind} {self.seed} {self.number}"

    @property
    def random(self):
        """A generator that belongs to this case alone."""
        return Random(str(self))


@dataclass(slots=True)
class Tally:
    """What was tried, and what came out."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    bad: list[tuple[Case, Verdict]] = field(default_factory=list)

    def add(self, case, verdict):
        """Count a case."""
        self.counts.setdefault(case.kind, Counter())[verdict.outcome] += 1
        if verdict.outcome in BAD:
            self.bad.append((case, verdict))

    def table(self):
        """Format the counts as a Markdown table."""
        header = ["kind", "tried", *OUTCOMES]
        counts = dict(sorted(self.counts.items())) | {"all": sum(self.counts.values(), Counter())}
        rows = [
            [kind, *(f"{n:,}" for n in (each.total(), *(each[name] for name in OUTCOMES)))]
            for kind, each in counts.items()
        ]
        lines = [header, ["---", *["--:"] * (len(header) - 1)], *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def problems(self):
        """List the bad cases, each with the command that repeats it."""
        again = "    python tests/faults/campaign.py --case"
        return "\n".join(
            f'{verdict.outcome}: {verdict.detail}\n{again} "{case}"' for case, verdict in self.bad
        )


def right(problems, outcome="accepted"):
    """Return that outcome unless there are problems."""
    return Verdict("wrong", first_problem(problems)) if problems else Verdict(outcome)


def first_problem(problems):
    """Join what was found, so that a line holds it."""
    return "; ".join(" ".join(problem.split()) for problem in problems)[:600]


def too_long(message, limit=LONGEST_MESSAGE):
    """Return the problem of a message that is too long to be clear."""
    return [f"a message of {len(message):,} characters"] if len(message) > limit else []
