"""The causal study: trials of every user, what models say of them, and what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from srs_eval.cards import rows_by_card
from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.data.anki.presets import read_fsrs_settings
from srs_eval.draws.estimate import strength
from srs_eval.draws.lots import Lots
from srs_eval.draws.randomness import doubts
from srs_eval.draws.reconstruct import CERTAIN, SEED, Draws, Month, reconstructed
from srs_eval.draws.rules import Rule
from srs_eval.draws.trials import (
    Assignments,
    Outcomes,
    Predicted,
    Trials,
    in_time,
    nothing_predicted,
    outcomes,
    pooled,
    predicted,
    trials_of,
)
from srs_eval.errors import ConfigError, FitError, FitSkipped, ReviewLogError
from srs_eval.nouns import Algorithm, BoolArray, FloatArray, IntArray, Reviews, Source, User

SIMULATED = "simulated"
WEAK = 10.0  # F statistics below it are of no use
LATE = "due too near to the last day of their deck"
UNSEEN = "not seen again on a later day"
WEAKLY = "of version 3 whose draw hardly moves the interval"
NOT_V3 = "of versions 1 and 2, which are not asked for"
FACTS = (
    *("rating", "days since the review before", "days drawn on average", "reviews before"),
    *("lapses before", "answer time", "weekday", "date"),
)


@dataclass(frozen=True, slots=True)
class Part:
    """The trials of one user, and what is known of all their draws, seen again or not."""

    user: str
    trials: Trials
    predictions: Mapping[str, Predicted]
    # Of each draw that could have been followed; [m]: the instrument, whether the card was seen
    # again, and its card
    instrument: FloatArray
    seen: FloatArray
    card: IntArray
    facts: Mapping[str, FloatArray]  # What was known before the draw, [m] each


@dataclass(frozen=True, slots=True)
class Collected:
    """What a study rests on."""

    parts: Sequence[Part]
    models: Sequence[str]
    excluded: Mapping[str, int] = field(default_factory=dict)  # Answers, by reason
    refused: Mapping[str, str] = field(default_factory=dict)  # Reasons, by user
    months: Sequence[tuple[str, Month]] = ()
    missing: Mapping[str, str] = field(default_factory=dict)  # Why models predict nothing
    failed: Sequence[str] = ()  # Those of them whose fit failed

    def trials(self) -> Trials:
        """Return the trials of all users."""
        return pooled([part.trials for part in self.parts])

    def predictions(self, model: str) -> Predicted:
        """Return what a model says of the trials of all users."""
        every = [part.predictions[model] for part in self.parts]
        names = [each.name for each in fields(Predicted)]
        return Predicted(*[np.concatenate([getattr(one, n) for one in every]) for n in names])

    def draws(self) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
        """Return instrument, whether seen again, user and card of all draws."""
        user = np.repeat(np.arange(len(self.parts)), [len(part.seen) for part in self.parts])
        names = ("instrument", "seen", "card")
        instrument, seen, card = (
            np.concatenate([getattr(part, name) for part in self.parts]) for name in names
        )
        _, both = np.unique(np.stack([user, card]), axis=1, return_inverse=True)
        return instrument, seen, user, both.ravel()

    def facts(self) -> dict[str, FloatArray]:
        """Return what was known before each draw."""
        return {name: np.concatenate([p.facts[name] for p in self.parts]) for name in FACTS}


def collect(
    sources: Iterable[Source],
    algorithms: Mapping[str, Algorithm],
    *,
    only_v3: bool = False,
    seed: int = 2026,
    each: Callable[[str], None] = lambda user: None,
) -> Collected:
    """Read logs, reconstruct their draws, and have models predict what came after them.

    Algorithms go by their names. Users whose log has no draws, or whose draws are not random, are
    refused with a reason; `each` is called with every user who is done.
    """
    excluded: Counter[str] = Counter()
    refused: dict[str, str] = {}
    months: list[tuple[str, Month]] = []
    parts: list[Part] = []
    missing: dict[str, str] = {}
    failed: list[str] = []
    for source in sources:
        for user in source.users():
            name = f"{source.name}: {user}" if len(source.users()) > 1 else str(user)
            if name in refused or any(name == part.user for part in parts):
                name = f"{name} ({source.location})"  # files of one name in several folders
            try:
                reviews, draws = read_draws(source, user)
            except ReviewLogError as error:
                refused[name] = str(error)
                continue
            months += [(name, month) for month in draws.months]
            excluded.update(draws.excluded)
            reason = doubts(reviews, draws.assigned) or ("" if len(draws.assigned) else "no draws")
            if reason:
                refused[name] = reason
                excluded["of users who are refused"] += len(draws.assigned)
                continue
            followed = _followed(reviews, draws, excluded, only_v3=only_v3)
            if not followed.found.seen.any():
                refused[name] = "no draw that can be followed"
                continue
            parts.append(_part(name, followed, algorithms, seed, missing, failed))
            each(name)
    held = [name for name in algorithms if name not in missing]
    return Collected(parts, held, dict(excluded), refused, months, missing, failed)


def read_draws(source: Source, user: User) -> tuple[Reviews, Draws]:
    """Read a log with the draws behind it; raise `ReviewLogError` if they are not known."""
    if isinstance(source, AnkiCollection):
        log = source.read_with_table(user)
        presets = read_fsrs_settings(source.path).presets
        options = {number: preset.intervals for number, preset in presets.items()}
        return log.reviews, reconstructed(log, options)
    read = getattr(source, "read_with_intervals", None)
    if read is None:
        what = "it does not say which intervals the app gave"
        raise ReviewLogError(source.location, [what], "Use collections of Anki, or their packages.")
    reviews, given = read(user)
    several = given.high > given.low
    lots = Lots.uniform(given.low, given.high)
    assigned = Assignments(given.row, given.days, lots).take(several)
    excluded = {CERTAIN: int(np.sum(~several))}
    return reviews, Draws(assigned, [SIMULATED] * len(assigned), excluded=excluded)


@dataclass(frozen=True, slots=True)
class _Followed:
    """Draws of one user that end before the log does, and their outcomes."""

    reviews: Reviews
    assigned: Assignments
    rule: NDArray[np.str_]
    found: Outcomes

    @property
    def place(self) -> IntArray:
        """Where the answers are in the log."""
        return np.searchsorted(self.reviews.row, self.assigned.row)

    def without(self, rows: BoolArray, reason: str, excluded: Counter[str]) -> _Followed:
        """Leave draws out, [n], and count them."""
        excluded[reason] += int(np.sum(rows))
        assigned = self.assigned.take(~rows)
        found = outcomes(self.reviews, assigned.row)
        return _Followed(self.reviews, assigned, self.rule[~rows], found)

    def is_weak(self) -> bool:
        """Return whether draws around a guess hardly move the days that go by."""
        chosen = (self.rule == SEED) & self.found.seen
        own = self.assigned.take(chosen)
        mean = own.lots.mean_log
        exposure = np.log(np.maximum(self.found.elapsed[chosen], 1)) - mean
        exposure = exposure - exposure.mean() if len(exposure) else exposure
        return not strength(np.log(own.drawn) - mean, exposure, np.arange(len(own))) >= WEAK


def _followed(
    reviews: Reviews, draws: Draws, excluded: Counter[str], *, only_v3: bool
) -> _Followed:
    """Find the draws of a user that can be followed, and their outcomes."""
    rule = np.array(draws.rule, np.str_)
    found = outcomes(reviews, draws.assigned.row)
    followed = _Followed(reviews, draws.assigned, rule, found)
    if only_v3:
        followed = followed.without(~np.char.startswith(rule, Rule.V3), NOT_V3, excluded)
    day, last = reviews.day[followed.place], _last_day(reviews)[followed.place]
    followed = followed.without(~in_time(followed.assigned, day, last), LATE, excluded)
    if followed.is_weak():
        followed = followed.without(followed.rule == SEED, WEAKLY, excluded)
    excluded[UNSEEN] += int(np.sum(~followed.found.seen))
    return followed


def _part(
    name: str,
    followed: _Followed,
    algorithms: Mapping[str, Algorithm],
    seed: int,
    missing: dict[str, str],
    failed: list[str],
) -> Part:
    """Have models predict what came after the draws of one user."""
    reviews, assigned, found = followed.reviews, followed.assigned, followed.found
    predictions = {}
    for model, algorithm in algorithms.items():
        try:
            rng = np.random.default_rng(seed)
            predictions[model] = predicted(reviews, assigned, found, algorithm, rng)
        except ConfigError as error:
            missing[model] = str(error)
        except (FitSkipped, FitError) as error:
            missing[f"{model} for {name}"] = str(error)
            failed += [f"{model} for {name}"] if isinstance(error, FitError) else []
            predictions[model] = nothing_predicted(int(found.seen.sum()))
    _, card = np.unique(reviews.card, return_inverse=True)
    return Part(
        name,
        trials_of(reviews, assigned, found, followed.rule),
        predictions,
        np.log(assigned.drawn) - assigned.lots.mean_log,
        found.seen.astype(np.float64),
        card[followed.place],
        _facts(followed),
    )


def _last_day(reviews: Reviews) -> IntArray:
    """Return the last day of the deck of each review; of the log where decks are not known."""
    if reviews.deck is None:
        return np.full(len(reviews), reviews.day[-1])
    _, deck = np.unique(reviews.deck, return_inverse=True)
    last = np.zeros(deck.max() + 1, np.int64)
    np.maximum.at(last, deck, reviews.day)
    return np.where(reviews.deck < 0, reviews.day[-1], last[deck])


def _facts(followed: _Followed) -> dict[str, FloatArray]:
    """Return what was known of each answer before its interval was drawn."""
    reviews, place = followed.reviews, followed.place
    cards = rows_by_card(reviews.card)
    lapse = ~reviews.recalled & (reviews.elapsed_days > 0)
    spent = np.zeros(len(reviews)) if reviews.duration_ms is None else reviews.duration_ms
    values = (
        reviews.rating[place],
        np.log1p(np.maximum(reviews.elapsed_days[place], 0)),
        followed.assigned.lots.mean_log,
        np.log1p(cards.nth[place]),
        cards.earlier(lapse)[place],
        np.log1p(np.maximum(spent[place], 0)),
        reviews.day[place] % 7,
        reviews.day[place],
    )
    return {name: np.asarray(v, np.float64) for name, v in zip(FACTS, values, strict=True)}
