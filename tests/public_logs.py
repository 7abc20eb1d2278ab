"""Public review logs of real users, which travel with the tests: `logs/README.md` says whose."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from srs_eval.data.schema import reviews_from_columns

LOGS = Path(__file__).with_name("logs")
JOSH = "py-fsrs-josh/review_logs_josh.csv"
JOSH_AS_BENCHMARK = "py-fsrs-josh/revlogs_benchmark_schema.csv"

_DAY_MS = 86_400_000
_DAY_BEGINS_MS = 10 * 3_600_000


def write_logs(folder):
    """Write the files as they were published, and josh in the columns of the benchmark, too."""
    shutil.copytree(LOGS / "anki-mit", folder / "anki-mit")
    (folder / JOSH).parent.mkdir()
    table = pd.read_parquet(LOGS / "py-fsrs-josh/reviews.parquet")
    as_benchmark(table).to_csv(folder / JOSH_AS_BENCHMARK, index=False, lineterminator="\n")
    when = [time.to_pydatetime().isoformat() for time in table["review_time"]]
    table.assign(review_time=when).to_csv(folder / JOSH, index=False, lineterminator="\n")


def as_benchmark(table):
    """Convert reviews in order of time to the columns of anki-revlogs-10k.

    Days begin at 10:00 UTC, in the middle of the hours in which this user never reviews.
    """
    at = table["review_time"].astype("int64")
    card, _ = pd.factorize(table["card_id"])
    day = (at - _DAY_BEGINS_MS) // _DAY_MS
    whole = pd.DataFrame({"day": day - day.iloc[0], "second": at // 1000})
    since = whole.groupby(card).diff().fillna(-1).astype(np.int64)
    return pd.DataFrame(
        {
            "card_id": card,
            "day_offset": whole["day"],
            "rating": table["review_rating"],
            "duration": table["review_duration"],
            "elapsed_days": since["day"],
            "elapsed_seconds": since["second"],
        }
    )


def josh_reviews():
    """Return the reviews whose public numbers are in `golden/training_josh.json`."""
    table = as_benchmark(pd.read_parquet(LOGS / "py-fsrs-josh/reviews.parquet"))
    names = {"card_id": "card", "day_offset": "day", "duration": "duration_ms"}
    return reviews_from_columns(user="josh", source="josh", **table.rename(columns=names))
