"""Options of data: what cannot be meant, and which users are read."""

import json
from functools import partial

import pandas as pd
from cases import making

from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.data.options import Columns, TableOptions, wanted_users
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.data.table import ReviewTable
from srs_eval.errors import ReviewLogError

table = partial(ReviewTable, "log.csv")
anki = partial(AnkiCollection, "a.anki2")

NAMED = {"table": table, "anki": anki}
NAMED |= {each.__name__: each for each in (Columns, TableOptions, SyntheticUsers)}
NAMED["wanted_users"] = wanted_users


def test_options_that_cannot_be_meant_are_refused_by_name(transcript):
    transcript("data_options", making(NAMED))


def test_options_at_their_bounds_are_taken():
    assert len(wanted_users("1-1000000") or ()) == 1_000_000
    assert len(SyntheticUsers(users=1, size_scale=1e-9, seed=0, max_reviews=1).read(1)) == 1


def test_lists_and_ranges_are_spelled_out():
    assert wanted_users(["1 - 2", 250]) == wanted_users("1 - 2, 250") == (1, 2, 250)
    for name in ("9" * 5000, f"1-{'9' * 5000}"):
        assert wanted_users(name) == (name,)


def test_users_come_in_the_order_they_were_asked_for_or_are_named_beside_others(transcript):
    def told_by(known, *words):
        given = {name: json.loads(value) for name, value in (word.split("=") for word in words)}
        frame = pd.DataFrame({"who": json.loads(known), "card": 1, "rating": 3, "day": 0})
        source = ReviewTable(frame, Columns(user="who", day="day"), **given)
        try:
            return f"  {source.users()}, {source.remarks()}\n"
        except ReviewLogError as error:
            return f"  {error}\n"

    transcript("choices_of_users", told_by)


def test_a_sample_has_the_same_users_each_time_and_hardly_others_when_users_are_added():
    def sampled(users):
        return TableOptions(sample=100).among({str(user): user for user in users}, "d")

    users = tuple(range(1000))
    sample = sampled(users)
    assert len(sample) == 100
    assert sample == tuple(sorted(sample))
    assert sampled(users[::-1]) == sample[::-1]
    more = sampled(range(1100))
    assert len(set(more) & set(sample)) > 80
    assert set(more) <= set(sample) | set(range(1000, 1100))
    # spread evenly: hypergeometric, standard deviation 4.7
    assert abs(sum(user < 500 for user in sample) - 50) < 20
