"""What tests of algorithms are given."""

import pandas as pd
import pytest

from srs_eval.data.schema import reviews_from_columns


@pytest.fixture(scope="session")
def josh_log(real_logs):
    """Reviews of the real user whose public numbers are in `tests/golden/training_josh.json`."""
    path = real_logs / "py-fsrs-josh/revlogs_benchmark_schema.csv"
    if not path.exists():
        pytest.skip(f"the log of this user is not among the real review logs: {path.name}")
    table = pd.read_csv(path)
    return reviews_from_columns(
        user="josh",
        source=path.name,
        card=table["card_id"],
        rating=table["rating"],
        day=table["day_offset"],
        elapsed_days=table["elapsed_days"],
        elapsed_seconds=table["elapsed_seconds"],
        duration_ms=table["duration"],
    )
