"""The names of users, as any source may give them."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from srs_eval.errors import ReviewLogError
from srs_eval.experiment.experiment import checked_users
from srs_eval.experiment.watching import report_means


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
    trial = SimpleNamespace(metric="log_loss", report=lambda *step: told.append(step))
    panel = SimpleNamespace(names=("auc", "log_loss"))
    scored = {
        user: SimpleNamespace(values=(0.0, float(value)))
        for user, value in {"a": 1, "b": 3, "c": "nan", "d": 8}.items()
    }
    done, steps = {}, 0
    for user in ("b", "c", "a", "d"):
        done[user] = scored[user]
        steps = report_means(trial, panel, "abcd", done, steps)
    assert told == [(1, 1.0), (2, 2.0), (3, 2.0), (4, 4.0)]
    told.clear()  # as after a kill: all of them again, before anything else is done
    report_means(trial, panel, "abcd", done, 0)
    assert [step for step, _ in told] == [1, 2, 3, 4]
