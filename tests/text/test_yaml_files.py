"""Files of strangers in YAML: what is too large is refused before it is expanded, at every door."""

import itertools
import string

import pytest

from srs_eval.config import option_files
from srs_eval.errors import ConfigError
from srs_eval.results.folder import read_config
from srs_eval.text.yaml_files import YamlError, parsed, read_yaml

LETTERS = string.ascii_lowercase
GROWING = "".join(
    f"{one}: &{one} [*{before}, *{before}]\n" for before, one in itertools.pairwise(LETTERS)
)
BOMB = f"a: &a [x, x]\n{GROWING}"  # 2**26 values
LOOP = "a: &a {b: *a}\n"
DEEP = f"a: {'[' * 500}{']' * 500}\n"


def refused_option(folder, text):
    (folder / "algo").mkdir()
    (folder / "algo" / "x.yaml").write_text(text)
    with option_files.also_in([folder]):
        assert option_files.described("algo")["x"] == ""
        assert option_files.arguments("algo")["x"] == set()
        (problem,) = option_files.unreadable()
        assert bool(option_files.harmful()) == (text != DEEP)
    return problem


def refused_by(read, *place):
    def door(folder, text):
        file = folder.joinpath(*place)
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        with pytest.raises(ConfigError) as refused:
            read(folder)
        return str(refused.value)

    return door


DOORS = {
    "option": refused_option,
    "configuration of a run": refused_by(read_config, ".hydra", "config.yaml"),
}


@pytest.mark.parametrize("text", [BOMB, LOOP, DEEP], ids=["bomb", "loop", "deep"])
@pytest.mark.parametrize("door", DOORS)
def test_what_would_grow_is_refused_at_every_door(tmp_path, door, text):
    problem = DOORS[door](tmp_path, text)
    assert "more than" in problem


@pytest.mark.parametrize("value", ["!!bool foo", "!!int ''", "!!timestamp foo"])
@pytest.mark.parametrize("door", DOORS)
def test_values_against_their_tags_are_refused_at_every_door(tmp_path, door, value):
    problem = DOORS[door](tmp_path, f"a: {value}\n")
    assert "tag" in problem


def test_aliases_may_be_used():
    text = b"a: &a [1, 2]\nb: *a\nc: {<<: {d: *a}}\nd: 2026-01-31\n"
    assert parsed(text) == {"a": [1, 2], "b": [1, 2], "c": {"d": [1, 2]}, "d": "2026-01-31"}


def test_what_is_no_yaml_or_too_long_is_refused(tmp_path):
    for wrong in (b"a: [", b"\xff", b"a: *b"):
        with pytest.raises(YamlError):
            parsed(wrong)
    (tmp_path / "x").write_bytes(b"a: 1 #" + 1_000_000 * b"x")
    with pytest.raises(YamlError):
        read_yaml(tmp_path / "x")
