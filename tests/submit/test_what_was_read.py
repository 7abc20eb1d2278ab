"""How much a submission's source had, of which its scores may be a small part."""

from pathlib import Path

import pytest
from submissions import rewrite

from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.site.view import view
from srs_eval.submit.checking import check
from srs_eval.submit.reading import read_leaderboard
from srs_eval.submit.verifying import verify


def claim(board: Path, read: dict[str, int] | None) -> None:
    for name in ("avg", "constant"):
        rewrite(board / name, lambda about: about["data"].update(read=read))


def test_users_and_reviews_of_the_source_are_stated_and_shown(board: Path) -> None:
    (only,) = read_leaderboard(board)
    source = SyntheticUsers(users=3, seed=5, size_scale=0.02, max_reviews=900, version=2)
    there = {"users": 3, "reviews": sum(len(source.read(user)) for user in source.users())}
    assert {str(one.about["data"]["read"]) for one in only.submissions} == {str(there)}
    (rests,) = (note for note in view(only).notes if note.startswith("Rests on"))
    assert f"3 of 3 users and {only.submissions[0].about['data']['reviews']:,} of " in rests
    assert not any(note.startswith("Caution") for note in view(only).notes)

    claim(board, {"users": 30, "reviews": there["reviews"]})
    (only,) = read_leaderboard(board)
    assert "Caution: 90 % of the users (27 of 30) are left out" in view(only).notes
    (problem,) = verify(board / "constant").problems
    assert (problem.kind, problem.where) == ("rerun", "data.read")

    claim(board, None)  # as earlier releases wrote them
    (only,) = read_leaderboard(board)
    assert not any(note.startswith("Rests on") for note in view(only).notes)
    assert not verify(board / "constant").problems


@pytest.mark.parametrize(
    ("read", "kind", "where"),
    [
        ({"users": 2, "reviews": 10**6}, "users", "data.read.users"),
        ({"users": 3, "reviews": 5}, "reviews", "data.read.reviews"),
        ({"users": 3, "reviews": True}, "type", "data.read.reviews"),
        ({"users": 3}, "missing", "data.read.reviews"),
    ],
)
def test_no_source_has_less_than_its_scores(board: Path, read, kind: str, where: str) -> None:
    claim(board, read)
    found = {(p.kind, p.where.rpartition(" ")[2]) for p in check([board / "avg"]).problems}
    assert (kind, where) in found
