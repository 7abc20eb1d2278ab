"""Write the log of a simulated app, which stores two predictions before each answer.

    python simulated_app.py log.parquet

The challenger knows the truth; the champion knows less, by 0.1 on average.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd


def log_of(
    rng: np.random.Generator,
    *,
    users: int = 20,
    days: int = 60,
    cards: int = 30,
    better: float = 0.1,
    bias: float = 0.0,
) -> pd.DataFrame:
    """Simulate reviews of each card on every second day.

    Parameters
    ----------
    rng : Generator
        Draws probabilities and answers.
    users, days, cards : int
        How many, and cards of each user.
    better : float
        Standard deviation of what only the challenger knows.
    bias : float
        By how much the champion predicts too high.
    """
    user, day, card = np.indices((users, days, cards)).reshape(3, -1)
    user, day, card = (each[day % 2 == card % 2] for each in (user, day, card))
    noise = rng.normal(0, better, len(card))
    true = np.clip(rng.uniform(0.87, 0.93, len(card)) + noise, 0.02, 0.98)
    time = pd.to_timedelta(86_400 * day + 36_000 + 60 * card, unit="s")
    return pd.DataFrame(
        {
            "user": user,
            "card": card,
            "rating": np.where(rng.random(len(card)) < true, 3, 1),
            "time": pd.Timestamp("2026-03-01", tz="UTC") + time,
            "champion": np.clip(true - noise + bias, 0, 1),
            "challenger": true,
        }
    )


if __name__ == "__main__":
    log_of(np.random.default_rng(4)).to_parquet(sys.argv[1])
