"""The folder of a site: written whole or not at all, also after commands that were killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock

from srs_eval.errors import ConfigError
from srs_eval.site.folder import MARKER, whole_site


def left_over(place: Path, *sites: str) -> Path:
    """Leave what a killed command leaves beside its site."""
    folder = place.parent / f".{place.name}.abcd1234"
    for name in sites:
        (folder / name).mkdir(parents=True)
        (folder / name / MARKER).touch()
        (folder / name / "index.html").write_text(name)
    return folder


def write(place: Path, text: str, *, fails: bool = False) -> None:
    with whole_site(place) as folder:
        (folder / "index.html").write_text(text)
        if fails:
            raise ValueError("no scores")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "site"


def test_a_site_is_replaced_whole_and_other_folders_are_left_alone(place: Path) -> None:
    place.mkdir()
    (place / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError):
        write(place, "a")
    assert names(place) == {"thesis.txt"}
    (place / "thesis.txt").unlink()
    write(place, "a")
    (place / "old.html").touch()
    write(place, "b")
    assert names(place) == {MARKER, "index.html"}
    with pytest.raises(ValueError, match="no scores"):
        write(place, "c", fails=True)
    assert (place / "index.html").read_text() == "b"
    assert names(place.parent) == {"site"}


def test_what_a_killed_command_left_is_removed_or_put_back_by_the_next(place: Path) -> None:
    left_over(place, "new")
    (place.parent / ".site.notes").mkdir()  # of another program
    left_over(place.with_name("other"), "new")
    write(place, "a")
    others = {".site.notes", ".other.abcd1234"}
    assert names(place.parent) == {"site", *others}
    place.rename(place.with_name("away"))
    left_over(place, "old", "new")  # killed between moving the old site away and the new one in
    with pytest.raises(ValueError, match="no scores"):
        write(place, "b", fails=True)
    assert (place / "index.html").read_text() == "old"
    assert names(place.parent) == {"site", "away", *others}


def test_what_another_command_writes_now_is_left_alone(place: Path) -> None:
    theirs = left_over(place, "new")
    with FileLock(theirs / ".lock"):
        write(place, "mine")
        assert names(place.parent) == {"site", theirs.name}
    with whole_site(place) as folder:
        write(place, "meanwhile")
        assert folder.is_dir()
        assert not theirs.exists()
    assert names(place.parent) == {"site"}


def test_a_site_stays_where_its_place_cannot_be_taken(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(place, "first")
    rename = Path.rename
    monkeypatch.setattr(
        Path, "rename", lambda self, to: rename(self, to if self.name != "new" else to / "a/b")
    )
    with pytest.raises(OSError, match="a/b"):
        write(place, "second")
    assert (place / "index.html").read_text() == "first"
    assert names(place.parent) == {"site"}
