import pytest

from srs_eval.data.selection import Choice, KnownUsers, listed, wanted_users
from srs_eval.errors import ConfigError, ReviewLogError


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        (None, None),
        (8, (8,)),
        ("8", (8,)),
        ("1-3", (1, 2, 3)),
        ("1-3,250", (1, 2, 3, 250)),
        ([8, 36], (8, 36)),
        (["1 - 2", 250], (1, 2, 250)),
        ([8, "7-9"], (8, 7, 9)),
        ("anna, ben", ("anna", "ben")),
        ("anna-maria", ("anna-maria",)),
    ],
)
def test_lists_and_ranges_are_spelled_out(users, expected):
    assert wanted_users(users) == expected


def test_users_come_in_the_order_they_were_asked_for():
    known = KnownUsers("d", (1, 2, 3))
    assert Choice([3, 1]).among(known) == (3, 1)
    assert Choice().among(known) == (1, 2, 3)
    assert KnownUsers("d", ("36",)).find(36) == "36"


def test_missing_users_are_all_named_beside_those_there_are():
    with pytest.raises(ReviewLogError) as caught:
        KnownUsers("data", (8, 36)).select(range(7, 37))
    assert "there are no users 7, 9-35" in str(caught.value)
    assert "It has 2 users: 8, 36." in str(caught.value)


def test_a_misspelt_user_gets_a_suggestion():
    with pytest.raises(ReviewLogError) as caught:
        KnownUsers("data", ("anna", "ben")).find("ana")
    assert caught.value.hint == "It has 2 users: anna, ben. Did you mean anna?"


def test_a_sample_has_the_same_users_each_time_and_hardly_others_when_users_are_added():
    users = tuple(range(1000))
    sample = Choice(sample=100).among(KnownUsers("d", users))
    assert len(sample) == 100
    assert sample == tuple(sorted(sample))
    shuffled = Choice(sample=100).among(KnownUsers("d", users[::-1]))
    assert shuffled == sample[::-1]
    more = Choice(sample=100).among(KnownUsers("d", (*users, *range(1000, 1100))))
    assert len(set(more) & set(sample)) > 80
    assert set(more) <= set(sample) | set(range(1000, 1100))
    # spread evenly: hypergeometric, standard deviation 4.7
    assert abs(sum(user < 500 for user in sample) - 50) < 20


def test_a_sample_keeps_the_order_of_the_source():
    users = ("zoe", 30, "ann", 4, "10", "ben", 200, "eve", 1, "Bob")
    for order in (users, users[::-1], tuple(sorted(users, key=str))):
        for size in range(1, 10):
            sample = Choice(sample=size).among(KnownUsers("d", order))
            assert len(sample) == size
            assert sample == tuple(user for user in order if user in sample)
    asked = Choice(users[3:], sample=5).among(KnownUsers("d", users[::-1]))
    assert asked == tuple(user for user in users if user in asked)


def test_a_sample_is_of_the_users_asked_for():
    known = KnownUsers("d", tuple(range(1000)))
    choice = Choice("1-50", sample=10)
    assert set(choice.among(known)) <= set(range(1, 51))
    assert len(choice.among(known)) == 10
    assert choice.remarks(known)[0].startswith("a sample of 10 of 50 users")
    assert len(Choice("1-50", sample=60).among(known)) == 50
    assert Choice("1-50").remarks(known) == ()


def test_long_lists_are_cut_short():
    assert listed(range(0, 16, 2)) == "0, 2, 4, 6, 8, 10, 12, 14"
    assert listed(range(0, 18, 2)) == "0, 2, 4, 6, 8, 10, 12, 14 and more"


def test_a_million_users_can_be_named_and_a_number_of_a_thousand_digits_is_a_name():
    assert len(wanted_users("1-1000000")) == 1_000_000
    assert wanted_users("9" * 5000) == ("9" * 5000,)
    assert wanted_users(f"1-{'9' * 5000}") == (f"1-{'9' * 5000}",)


def test_the_first_users_are_taken_in_their_order():
    known = KnownUsers("d", ("u3", "u1", "u2"))
    assert Choice(first=2).among(known) == ("u3", "u1")
    assert Choice(["u2", "u1"], first=1).among(known) == ("u2",)
    assert Choice(first=9).among(known) == known.users
    for wrong in ({"first": 0}, {"first": 1, "sample": 1}):
        with pytest.raises(ConfigError, match="first"):
            Choice(**wrong)


def test_a_count_in_place_of_names_is_explained():
    with pytest.raises(ReviewLogError) as caught:
        Choice(3).among(KnownUsers("d", ("ann", "ben")))
    assert "data.first=3" in caught.value.hint
