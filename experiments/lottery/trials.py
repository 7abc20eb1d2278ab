"""Reviews after an interval that was drawn by lot: their outcomes, and predictions of models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from estimates import change
from months import SEED, Draws, reconstructed
from options import interval_options
from rules import Lots
from scipy.special import chdtrc, ndtr

from srs_eval.algorithms.algorithm import Algorithm, MemoryModel, has_curve
from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.errors import FitError, FitSkipped, ReviewLogError
from srs_eval.protocol.candidates import in_whole_days

WEAK = 10.0  # F statistics below it are of no use
LEAST_P = 0.001  # below it, draws are not taken for random: some add-ons choose the day instead
BINS = 10
PLACES_SEED, HALVES_SEED = 2026, 2026
# How long before the last day of its deck the latest possible due day has to be.
MARGIN_DAYS, MARGIN_SHARE = 7, 0.3
LATE = "due too near to the last day of their deck"
UNSEEN = "not seen again on a later day"
WEAKLY = "of version 3 whose draw hardly moves the interval"
OF_REFUSED = "of users who are refused"
FACTS = (
    *("rating", "days since the review before", "days drawn on average", "reviews before"),
    *("lapses before", "answer time", "weekday", "date"),
)


@dataclass
class Lottery:
    """Draws of all users, and predictions by model of those after which the card was seen again.

    A draw has a `user`, a `card`, the `rule`, the `days` drawn, the instrument `z` (ln days less
    their mean over the lots, `mean_log`), a `cell` of equal user, rule and lots, whether it was
    `seen` again, after which days (`elapsed`), `recalled` or not, and at the next review `later`;
    and each of `FACTS`. Predictions are of recall after the days that went by (`actual`), those
    `drawn`, on average over the lots (`mean`), and at the review after (`later`).
    """

    draws: pd.DataFrame
    predictions: Mapping[str, pd.DataFrame]
    months: pd.DataFrame
    excluded: Mapping[str, int]  # answers, by reason
    refused: Mapping[str, str]  # reasons, by user
    missing: Mapping[str, str]  # why models predict nothing
    failed: Sequence[str]  # those of them whose fit failed

    @property
    def trials(self) -> pd.DataFrame:
        """The draws after which the card was seen again."""
        return self.draws[self.draws["seen"]]


def play(collections: Sequence[AnkiCollection], algorithms: Mapping[str, Algorithm]) -> Lottery:
    """Reconstruct the draws of collections, and have models predict what came after them.

    Collections whose draws are not known, or not random, are refused with a reason.
    """
    excluded: Counter[str] = Counter()
    refused, missing = {}, {}
    failed, tables, months = [], [], []
    predictions: dict[str, list[pd.DataFrame]] = {name: [] for name in algorithms}
    stems = Counter(each.users()[0] for each in collections)
    for one in collections:
        (stem,) = one.users()
        user = str(stem) if stems[stem] == 1 else one.location
        try:
            reviews, draws = read_draws(one)
        except ReviewLogError as error:
            refused[user] = str(error)
            continue
        months.append(draws.months.assign(user=user))
        excluded.update(draws.excluded)
        if reason := doubts(reviews, draws):
            refused[user] = reason
            excluded[OF_REFUSED] += len(draws.table)
            continue
        table, lots = followed(reviews, draws, excluded)
        if not table["seen"].any():
            refused[user] = "no draw that can be followed"
            continue
        tables.append(table.assign(user=user))
        seen = table["seen"].to_numpy()
        for name, algorithm in algorithms.items():
            try:
                said = predicted(reviews, table[seen], lots.take(seen), algorithm)
            except (FitSkipped, FitError) as error:
                missing[f"{name} for {user}"] = str(error)
                failed += [f"{name} for {user}"] if isinstance(error, FitError) else []
                said = pd.DataFrame(np.nan, range(seen.sum()), ["actual", "drawn", "mean", "later"])
            predictions[name].append(said)
    pooled = {
        name: pd.concat(every, ignore_index=True) for name, every in predictions.items() if every
    }
    draws = pooled_draws(tables)
    return Lottery(
        draws,
        pooled,
        pd.concat(months) if months else pd.DataFrame(),
        excluded,
        refused,
        missing,
        failed,
    )


def pooled_draws(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the draws of all users, with numbers of cards and cells that are different for all."""
    if not tables:
        return pd.DataFrame()
    draws = pd.concat(tables, ignore_index=True)
    draws["card"] = draws.groupby(["user", "card"], sort=False).ngroup()
    lots = ["low", "high", "mean_log", "spread"]
    rounded = draws[lots].round(9)
    keys = [draws["user"], draws["rule"], *(rounded[name] for name in lots)]
    draws["cell"] = draws.groupby(keys).ngroup()
    return draws


def read_draws(collection: AnkiCollection) -> tuple[Reviews, Draws]:
    """Read a log with the draws behind it."""
    log = collection.read_with_table(collection.users()[0])
    return log.reviews, reconstructed(log, interval_options(collection.path))


def doubts(reviews: Reviews, draws: Draws) -> str:
    """Return why the draws of a user are not random, "" if there is no sign of that."""
    if not len(draws.table):
        return "no draws"
    p = place_p_value(draws.table["days"].to_numpy(), draws.lots)
    if p < LEAST_P:
        return f"draws are not uniform among the possible days (p = {p:.1g})"
    day = reviews.day[np.searchsorted(reviews.row, draws.table["row"])]
    z = load_z(day, draws.table["days"].to_numpy(), draws.lots)
    if 2 * ndtr(-abs(z)) < LEAST_P:
        fewer = "few" if z < 0 else "many"
        return f"draws prefer days on which {fewer} cards are due already (z = {z:+.1f})"
    return ""


def place_p_value(days: IntArray, lots: Lots) -> float:
    """Test whether draws are spread over their lots as they should, by a chi-squared test."""
    own = days[lots.answer]
    below, exactly = (lots.mean(each.astype(float)) for each in (lots.days < own, lots.days == own))
    place = below + exactly * np.random.default_rng(PLACES_SEED).random(lots.n)
    counts = np.bincount(np.minimum(place * BINS, BINS - 1).astype(np.int64), minlength=BINS)
    expected = lots.n / BINS
    return float(chdtrc(BINS - 1, ((counts - expected) ** 2).sum() / expected))


def load_z(day: IntArray, days: IntArray, lots: Lots) -> float:
    """Return by how many standard errors the days drawn have more cards than the lots have.

    A day's cards are those that earlier draws have put there; `day` is that of each answer, [n],
    in time order. With random draws the difference has mean 0 and a known variance.
    """
    n = lots.n
    due = np.sort((day + days) * n + np.arange(n))
    possible = (day[lots.answer] + lots.days) * n
    earlier = np.searchsorted(due, possible + lots.answer) - np.searchsorted(due, possible)
    load: FloatArray = earlier.astype(np.float64)
    mean = lots.mean(load)
    variance = float((lots.mean(load * load) - mean * mean).sum())
    own = np.bincount(lots.answer, load * (lots.days == days[lots.answer]), n)
    return float((own - mean).sum() / np.sqrt(variance)) if variance > 0 else 0.0


def followed(reviews: Reviews, draws: Draws, excluded: Counter[str]) -> tuple[pd.DataFrame, Lots]:
    """Return the draws of a user that end well before the log of their deck, and their lots."""
    table, lots = draws.table, draws.lots
    place = np.searchsorted(reviews.row, table["row"])
    logarithm = np.log(lots.days)
    mean = lots.mean(logarithm)
    first = np.searchsorted(lots.answer, np.arange(lots.n))
    last = np.searchsorted(lots.answer, np.arange(lots.n), side="right") - 1
    table = table.assign(
        card=np.unique(reviews.card, return_inverse=True)[1][place],
        z=np.log(table["days"]) - mean,
        **{"low": lots.days[first], "high": lots.days[last], "mean_log": mean},
        spread=lots.mean(logarithm**2),
        **facts(reviews, place, mean),
    )
    table = table.join(next_reviews(reviews), on="row")
    table["seen"] = table["next_row"].notna()
    due = reviews.day[place] + table["high"]
    late = due + np.maximum(MARGIN_DAYS, MARGIN_SHARE * table["high"]) > last_day(reviews)[place]
    excluded[LATE] += int(late.sum())
    guessed = table["rule"] == SEED
    own = table[guessed & table["seen"] & ~late]
    exposure = np.log(np.maximum(own["elapsed"], 1)) - own["mean_log"]
    stage = change(
        own["z"].to_numpy(), (exposure - exposure.mean()).to_numpy(), own.index.to_numpy()
    )
    weak = guessed & ~late & (not stage.t**2 >= WEAK)
    excluded[WEAKLY] += int(weak.sum())
    kept = ~late & ~weak
    excluded[UNSEEN] += int((kept & ~table["seen"]).sum())
    return table[kept], lots.take(kept.to_numpy())


def next_reviews(reviews: Reviews) -> pd.DataFrame:
    """Return the next two reviews on later days of the card of each row; NaN if there is none."""
    columns = {"row": reviews.row, "elapsed": reviews.elapsed_days, "recalled": reviews.recalled}
    log = pd.DataFrame(columns, dtype=float)[reviews.elapsed_days != 0]
    by_card = log.groupby(reviews.card[log.index])
    later = by_card.shift(-2)
    table = by_card.shift(-1).rename(columns={"row": "next_row"})
    return table.assign(later_row=later["row"], later=later["recalled"]).set_axis(log["row"])


def last_day(reviews: Reviews) -> IntArray:
    """Return the last day of the deck of each review; of the log where decks are not known."""
    end = np.full(len(reviews), reviews.day[-1])
    if reviews.deck is None:
        return end
    by_deck = pd.Series(reviews.day).groupby(reviews.deck).transform("max").to_numpy()
    return np.where(reviews.deck < 0, end, by_deck)


def facts(reviews: Reviews, place: IntArray, mean_log: FloatArray) -> dict[str, FloatArray]:
    """Return what was known of each answer before its interval was drawn."""
    cards = rows_by_card(reviews.card)
    lapse = ~reviews.recalled & (reviews.elapsed_days > 0)
    spent = np.zeros(len(reviews)) if reviews.duration_ms is None else reviews.duration_ms
    values = (
        reviews.rating[place],
        np.log1p(np.maximum(reviews.elapsed_days[place], 0)),
        mean_log,
        np.log1p(cards.nth[place]),
        cards.earlier(lapse)[place],
        np.log1p(np.nan_to_num(spent[place])),
        reviews.day[place] % 7,
        reviews.day[place],
    )
    return {name: value.astype(float) for name, value in zip(FACTS, values, strict=True)}


def predicted(
    reviews: Reviews, trials: pd.DataFrame, lots: Lots, algorithm: Algorithm
) -> pd.DataFrame:
    """Predict the trials of one user by models that have learned from the other half of the cards.

    Raises
    ------
    FitError, FitSkipped
        If a fit failed or is impossible, or its model has no forgetting curve.
    """
    known, targets = in_whole_days(reviews.seen_by(algorithm), same_day=algorithm.same_day)
    _, card = np.unique(known.reviews.card, return_inverse=True)
    rng = np.random.default_rng(HALVES_SEED)
    half = rng.permutation(card.max() + 1)[card] % 2
    place = pd.Series(np.arange(len(known.log_row)), known.log_row)
    target, later = (
        place.reindex(trials[name]).fillna(-1).to_numpy(np.int64)
        for name in ("next_row", "later_row")
    )
    said = np.full((4, len(trials)), np.nan)
    for side in (0, 1):
        model = algorithm.fit(known.reviews, targets[half[targets] != side], rng)
        if not has_curve(model):
            raise FitSkipped(f"{type(model).__name__} has no forgetting curve")
        own = (target >= 0) & (half[target] == side)
        if own.any():
            days = trials["elapsed"].to_numpy()[own], trials["days"].to_numpy(float)[own]
            said[:3, own] = at(model, known.reviews, target[own], days, lots.take(own))
        own = (later >= 0) & (half[later] == side)
        if own.any():
            said[3, own] = model.predict(known.reviews, later[own])
    return pd.DataFrame(said.T, columns=["actual", "drawn", "mean", "later"])


def at(
    model: MemoryModel,
    reviews: Reviews,
    rows: IntArray,
    days: tuple[FloatArray, FloatArray],
    lots: Lots,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Predict at the days that went by, those drawn, and, on average, those possible."""
    every = np.concatenate([rows, rows, rows[lots.answer]])
    elapsed = np.concatenate([*days, lots.days.astype(float)])
    p = model.predict_at(reviews, every, elapsed[:, None])[:, 0]
    actual, drawn, possible = np.split(p.astype(np.float64), [len(rows), 2 * len(rows)])
    return actual, drawn, lots.mean(possible)
