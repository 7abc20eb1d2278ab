"""The study of clocks and leaks: what it reconstructs from logs."""

from dataclasses import replace

import numpy as np
from cases import loaded

from srs_eval.data.synthetic import SyntheticUsers

study = loaded("experiments/clocks_and_leaks/study.py")


def test_an_answer_time_that_is_not_known_counts_as_none():
    log = SyntheticUsers(users=1, size_scale=0.05, max_reviews=200).read(1)
    even = np.arange(len(log)) % 2 == 0
    logs = [replace(log, duration_ms=np.where(even, took, log.duration_ms)) for took in (0, np.nan)]
    zero, unknown = (
        (
            study.answer_times(each),
            *study.until_previous_answer(each),
            *(study.since_answer(each, answer_in_interval=within) for within in (True, False)),
        )
        for each in logs
    )
    for one, other in zip(zero, unknown, strict=True):
        np.testing.assert_array_equal(one, other)
