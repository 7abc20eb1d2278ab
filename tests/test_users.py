"""The names of users, as any source may give them."""

from dataclasses import dataclass

import numpy as np
import pytest

from srs_eval.all_users import checked_users
from srs_eval.errors import ReviewLogError


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
