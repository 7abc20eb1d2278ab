"""The interface of a logged memory model: histories of cards in, forgetting curves out.

Input, one row per review, the reviews of a card in their order:

- ``card``: number of the card; several cards may be asked about at once;
- ``elapsed_days``: days since the card's previous review (at its first, whatever it says);
- ``rating``: 1 Again, 2 Hard, 3 Good, 4 Easy;
- ``deck``, ``preset``, ``note_type``, ``template`` or ``note``, if the model has parameters for
  groups: the number of the card's group. Where it is -1 or left out, the fit to all reviews
  predicts.

Output, one row per card and day asked for: ``card``, ``days`` since its last review, and
``recall``, the probability of it. The parameter ``days`` says which days.

Cards are taken to have begun on one day, which matters only to models that look at more than
the card's own history.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from srs_eval.cards import with_next_reviews
from srs_eval.config.rebuild import rebuilt_model, same_day
from srs_eval.errors import ReviewLogError
from srs_eval.nouns import GROUPS, IntArray, Reviews
from srs_eval.results.tables import parts_from

COLUMNS = ("card", "elapsed_days", "rating")
_NOT_KNOWN = -1


class CurvesOfCards:
    """A model that predicts forgetting curves of cards, rebuilt from what `as_json` wrote."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._whole_days = bool(content["whole_days"])
        self._keeps_same_day = same_day(content["options"]) or not self._whole_days
        self._model: Any = rebuilt_model(
            content["options"],
            content["parameters"],
            parts_from(content.get("parts", ())),
            whole_days=self._whole_days,
        )

    def __call__(self, histories: pd.DataFrame, days: ArrayLike) -> pd.DataFrame:
        """Predict each card's recall so many days after its last review."""
        asked = np.asarray(days, np.float64)
        problems = _problems(histories, asked, whole_days=self._whole_days)
        if problems:
            raise ReviewLogError("histories", problems)
        names = list(dict.fromkeys(histories["card"].tolist()))
        reviews, rows = self._reviews(histories)
        p = self._model.predict_at(reviews, rows, np.tile(asked, (len(names), 1)))
        return pd.DataFrame(
            {
                "card": np.repeat(names, len(asked)),
                "days": np.tile(asked, len(names)),
                "recall": np.array(p, np.float64).ravel(),
            }
        )

    def _reviews(self, histories: pd.DataFrame) -> tuple[Reviews, Any]:
        """Build one log of all cards, each with one more review: the queried one."""
        frame = histories[list(COLUMNS)].reset_index(drop=True)
        first = ~frame["card"].duplicated()
        frame.loc[first, "elapsed_days"] = 0.0
        if not self._keeps_same_day:
            frame = frame[first | (frame["elapsed_days"] >= 1)]
        frame = frame.assign(
            time=frame.groupby("card")["elapsed_days"].cumsum(),
            number=pd.factorize(frame["card"])[0],
        ).sort_values("time", kind="stable")
        elapsed = frame["elapsed_days"].to_numpy(np.float64)
        cards = frame["card"].to_numpy()
        groups: dict[str, Any] = {group: _of_cards(histories, group, cards) for group in GROUPS}
        reviews = Reviews(
            user="",
            card=frame["number"].to_numpy(np.int64),
            day=np.floor(frame["time"].to_numpy()).astype(np.int64),
            rating=frame["rating"].to_numpy(np.int64),
            elapsed_days=np.where(frame["card"].duplicated(), np.floor(elapsed), -1).astype(
                np.int64
            ),
            elapsed=elapsed,
            row=np.arange(len(frame)),
            whole_days=self._whole_days,
            **groups,
        )
        reviews, rows = with_next_reviews(reviews)
        return reviews, rows[np.argsort(reviews.card[rows])]


def _of_cards(histories: pd.DataFrame, column: str, cards: IntArray) -> IntArray | None:
    """Return the group of each card; None without such a column."""
    if column not in histories.columns:
        return None
    of_card = histories.drop_duplicates("card").set_index("card")[column].fillna(_NOT_KNOWN)
    groups: IntArray = of_card.loc[cards.tolist()].to_numpy(np.int64)
    return groups


def _problems(histories: pd.DataFrame, days: Any, *, whole_days: bool) -> list[str]:
    missing = [name for name in COLUMNS if name not in histories.columns]
    if missing:
        return [f"no column {', '.join(missing)}; there are {', '.join(map(str, histories))}"]
    problems = []
    if not len(histories):
        problems.append("no reviews")
    if not histories["rating"].isin((1, 2, 3, 4)).all():
        problems.append("a rating that is not 1, 2, 3 or 4")
    elapsed = histories["elapsed_days"][histories["card"].duplicated()].to_numpy(np.float64)
    if not (np.isfinite(elapsed) & (elapsed >= 0)).all():
        problems.append("elapsed_days that are no number of days, 0 or more")
    elif whole_days and (elapsed != np.floor(elapsed)).any():
        problems.append("elapsed_days with a fraction: this model counts whole days")
    if not (np.isfinite(days) & (days >= 0)).all() or not len(days):
        problems.append("days that are no numbers of days, 0 or more")
    return problems
