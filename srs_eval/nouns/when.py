"""When predictions are made: what they may rest on besides the history of their own card."""

from __future__ import annotations

from typing import Literal, get_args

# Ordered by how much may be known: each includes the one before.
When = Literal["previous_review", "day_before", "at_review"]
WHEN: tuple[When, ...] = get_args(When)

# Of published scores and runs that do not say.
UNKNOWN = "unknown"

IN_WORDS: dict[str, str] = {
    "previous_review": "at the card's previous review",
    "day_before": "the day before",
    "at_review": "at the review",
    UNKNOWN: "at an unknown time",
}
# Names of the first and the last in public tables.
ALIASES = {"ahead": "previous_review", "imm": "at_review"}


def latest(*parts: When) -> When:
    """Return when a model predicts that is made of models that predict at these times.

    >>> latest("day_before", "previous_review")
    'day_before'
    """
    return max(parts, key=WHEN.index)


def when_of(algorithm: object) -> When:
    """Return when an algorithm predicts.

    Plug-ins of the first release declare `online` instead: True counts as ``at_review``, and
    False as ``previous_review``.

    >>> from types import SimpleNamespace
    >>> when_of(SimpleNamespace(when="day_before")), when_of(SimpleNamespace(online=True))
    ('day_before', 'at_review')
    """
    online = getattr(algorithm, "online", None)
    earlier: When | None = None
    if isinstance(online, bool):
        earlier = "at_review" if online else "previous_review"
    when = getattr(algorithm, "when", earlier)
    if when not in WHEN:
        raise ValueError(f"when={when!r}: there are {', '.join(WHEN)}")
    # The class `Algorithm` declares the first of all, whatever a plug-in says by `online`.
    return when if earlier is None else latest(when, earlier)


def when_named(name: str) -> str:
    """Return a name of `WHEN` for itself or its alias in public tables; other names unchanged.

    >>> when_named("imm"), when_named("ahead"), when_named("day_before")
    ('at_review', 'previous_review', 'day_before')
    """
    return ALIASES.get(name, name)
