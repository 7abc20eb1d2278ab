"""How random examples are drawn here: few, and the same ones every time."""

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

SEEDS = st.integers(0, 2**32 - 1)


def few(examples: int) -> settings:
    """Ask for so many examples, and for none to be made smaller, which would take minutes."""
    return settings(
        derandomize=True,
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
