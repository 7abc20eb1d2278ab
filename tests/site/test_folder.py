"""The folder of a site after commands that were killed, and beside commands that are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock

from srs_eval.site.folder import MARKER, whole_site


def left_over(place: Path, *sites: str) -> Path:
    """Leave what a killed command leaves beside its site."""
    folder = place.parent / f".{place.name}.abcd1234"
    for name in sites:
        (folder / name).mkdir(parents=True)
        (folder / name / MARKER).touch()
        (folder / name / "index.html").write_text(name)
    return folder


def write(place: Path, text: str) -> None:
    with whole_site(place) as folder:
        (folder / "index.html").write_text(text)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_a_killed_command_left_is_removed_by_the_next(tmp_path: Path) -> None:
    place = tmp_path / "site"
    left_over(place, "new")
    (tmp_path / ".site.notes").mkdir()  # of another program
    left_over(tmp_path / "other", "new")
    write(place, "a")
    assert names(tmp_path) == {"site", ".site.notes", ".other.abcd1234"}
    assert (place / "index.html").read_text() == "a"


def test_a_site_that_was_moved_away_comes_back_if_the_next_command_fails(tmp_path: Path) -> None:
    place = tmp_path / "site"
    left_over(place, "old", "new")
    with pytest.raises(ValueError, match="no scores"), whole_site(place):
        raise ValueError("no scores")
    assert (place / "index.html").read_text() == "old"
    assert names(tmp_path) == {"site"}


def test_what_another_command_writes_now_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "site"
    theirs = left_over(place, "new")
    with FileLock(theirs / ".lock"):
        write(place, "mine")
        assert names(tmp_path) == {"site", theirs.name}
    with whole_site(place) as folder:
        write(place, "meanwhile")
        assert folder.is_dir()
        assert not theirs.exists()
    assert names(tmp_path) == {"site"}


def test_a_site_stays_where_its_place_cannot_be_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "site"
    write(place, "first")
    rename = Path.rename

    def fails(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError("no space")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(OSError, match="no space"):
        write(place, "second")
    assert (place / "index.html").read_text() == "first"
    assert names(tmp_path) == {"site"}
