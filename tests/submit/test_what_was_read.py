"""How much a submission's source had, of which its scores may be a small part."""

from pathlib import Path

from submissions import about

from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.site.view import view
from srs_eval.submit.reading import read_leaderboard
from srs_eval.submit.verifying import verify


def notes_with(board: Path, read: dict[str, int] | None) -> list[str]:
    """Claim what both submissions have read; return what the board then says."""
    for name in ("avg", "constant"):
        about(data__read=read)(board / name)
    (only,) = read_leaderboard(board)
    return list(view(only).notes)


def test_users_and_reviews_of_the_source_are_stated_and_shown(board: Path) -> None:
    (only,) = read_leaderboard(board)
    source = SyntheticUsers(users=3, seed=5, size_scale=0.02, max_reviews=900, version=2)
    there = {"users": 3, "reviews": sum(len(source.read(user)) for user in source.users())}
    assert {str(one.about["data"]["read"]) for one in only.submissions} == {str(there)}
    (rests,) = (note for note in view(only).notes if note.startswith("Rests on"))
    assert f"3 of 3 users and {only.submissions[0].about['data']['reviews']:,} of " in rests
    assert not any(note.startswith("Caution") for note in view(only).notes)

    notes = notes_with(board, {"users": 30, "reviews": there["reviews"]})
    assert "Caution: 90 % of the users (27 of 30) are left out" in notes
    (problem,) = verify(board / "constant").problems
    assert (problem.kind, problem.where) == ("scores", "data.read")

    notes = notes_with(board, None)  # as earlier releases wrote them
    assert not any(note.startswith("Rests on") for note in notes)
    assert not verify(board / "constant").problems
