import pytest

from srs_eval.data.selection import listed, select_users, wanted_users
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


@pytest.mark.parametrize(
    ("users", "match"), [("9-3", "write 3-9"), ([], "no users"), ("", "no users")]
)
def test_empty_selections_are_refused(users, match):
    with pytest.raises(ConfigError, match=match):
        wanted_users(users)


def test_users_come_in_the_order_they_were_asked_for():
    assert select_users("d", [1, 2, 3], (3, 1)) == (3, 1)
    assert select_users("d", [1, 2, 3], None) == (1, 2, 3)
    assert select_users("d", ["36"], (36,)) == ("36",)


def test_missing_users_are_all_named_beside_those_there_are():
    with pytest.raises(ReviewLogError) as caught:
        select_users("data", [8, 36], range(7, 37))
    assert "there are no users 7, 9-35" in str(caught.value)
    assert "It has 2 users: 8, 36." in str(caught.value)


def test_a_misspelt_user_gets_a_suggestion():
    with pytest.raises(ReviewLogError, match=r"Did you mean anna\?"):
        select_users("data", ["anna", "ben"], ("ana",))


def test_long_lists_are_cut_short():
    assert listed(range(0, 40, 2)) == "0, 2, 4, 6, 8, 10, 12, 14 and more"


@pytest.mark.parametrize(
    "users", ["1-999999999", "1-600000,700000-1300000", ["1-999999", 5, "2000000-2000001"]]
)
def test_a_range_that_no_data_set_has_is_refused_before_it_is_written_out(users):
    with pytest.raises(ConfigError, match="at most 1,000,000 users"):
        wanted_users(users)


def test_a_million_users_can_be_named_and_a_number_of_a_thousand_digits_is_a_name():
    assert len(wanted_users("1-1000000")) == 1_000_000
    assert wanted_users("9" * 5000) == ("9" * 5000,)
    assert wanted_users(f"1-{'9' * 5000}") == (f"1-{'9' * 5000}",)
