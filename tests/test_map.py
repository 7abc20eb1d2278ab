"""The map in CONTRIBUTING.md is true: it names every folder, in the order of the layers."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml
from test_pages import load

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "srs_eval"
map_of_layers = load(ROOT / "docs" / "make_map.py")


def rows() -> dict[str, str]:
    """Folder and the file to start reading at, from the table of CONTRIBUTING.md."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| `(\w+)/` \|.*\| `([\w/]+\.py)` \|$", page, re.MULTILINE))


def test_the_map_has_every_folder_in_the_order_of_the_layers() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    layered = [name for layer in map_of_layers.layers() for name in layer]
    assert list(rows()) == [name for name in layered if name in folders]
    assert set(rows()) == folders


def test_the_file_to_start_reading_at_exists() -> None:
    assert [file for folder, file in rows().items() if not (PACKAGE / folder / file).exists()] == []


def test_the_picture_shows_the_layers() -> None:
    drawn = map_of_layers.drawn(map_of_layers.layers())
    assert map_of_layers.MAP.read_text(encoding="utf-8") == drawn


def test_the_tree_of_the_readme_exists() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = readme.partition("<!-- tree -->")[2].partition("<!-- /tree -->")[0]
    named = re.findall(r"^(\w+)/", tree, re.MULTILINE)
    assert named
    assert [name for name in named if not (ROOT / name).is_dir()] == []


def test_the_release_has_one_number_and_one_date() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    newest = re.search(r"^## (\S+) \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert newest is not None
    assert project["version"] == str(cited["version"]) == newest[1]
    assert str(cited["date-released"]) == newest[2]
