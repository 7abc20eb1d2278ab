"""The histories of the golden files as one log."""

import numpy as np

from srs_eval.nouns import Reviews


def log_of_all_histories(golden, interval):
    """One user whose cards are the golden histories, their reviews shuffled into each other."""
    histories = golden["histories"]
    n = [len(history["rating"]) for history in histories]
    nth = np.concatenate([np.arange(length) for length in n])
    day = np.concatenate([history["elapsed_days"] for history in histories])
    seconds = np.concatenate([history["elapsed_seconds"] for history in histories])
    reviews = Reviews(
        user=1,
        card=np.repeat([history["id"] for history in histories], n),
        day=np.zeros(len(nth), np.int64),
        rating=np.concatenate([history["rating"] for history in histories]),
        elapsed_days=np.where(nth == 0, -1, day),
        elapsed=day.astype(float) if interval == "days" else seconds / 86400,
        row=np.arange(len(nth)),
        duration_ms=1000.0 + (37 * nth) % 11 * 900,
    )
    together = np.lexsort((np.random.default_rng(1).random(len(nth)), nth))
    return reviews.take(together), nth[together]
