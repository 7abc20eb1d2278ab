"""The names of users, as any source may give them."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from srs_eval.errors import ReviewLogError
from srs_eval.experiment.experiment import checked_users
from srs_eval.experiment.watching import RunningMeans


@dataclass
class Named:
    """A source of which only the names matter."""

    names: object
    location: str = "somewhere"

    def users(self):
        return self.names


def test_numpys_numbers_become_pythons():
    users = checked_users(Named(np.array([3, 1])))
    assert users == [3, 1]
    assert all(type(user) is int for user in users)
    assert checked_users(Named(np.array(["ada", "bob"]))) == ["ada", "bob"]


def test_names_that_cannot_be_used_are_told_all_at_once():
    with pytest.raises(ReviewLogError) as caught:
        checked_users(Named([1, 2.5, 1, ("a", "b")]))
    told = str(caught.value)
    assert "somewhere" in told
    assert "user 2.5 is float, expected a number or a text" in told
    assert "user 1 is named more than once" in told
    assert "user ('a', 'b') is tuple" in told


def test_a_search_is_told_of_the_first_users_in_order_whoever_ends_first():
    told = []
    means = RunningMeans("log_loss", lambda *step: told.append(step), "abcd")
    for user, value in {"b": 3.0, "c": math.nan, "a": 1.0, "d": 8.0}.items():
        means.add([user], [value])
    assert told == [(1, 1.0), (2, 2.0), (3, 2.0), (4, 4.0)]
