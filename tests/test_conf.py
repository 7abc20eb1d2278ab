"""Every option of the command: composed, built, and as its class says."""

import copy
import inspect
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from cases import rest_nightly
from hydra.utils import get_object
from omegaconf import OmegaConf

from srs_eval.config import settings
from srs_eval.config.building import build, resolved
from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.metrics.panel import default_panel

ROOT = Path(__file__).parents[1]
CONF = ROOT / "conf"
OPTIONS = sorted(CONF.glob("*/*.yaml"))
OVERLAYS = [path for path in OPTIONS if path.parent.name in settings.OVERLAYS]
# Algorithms have these tests among their own.
BUILT = [path for path in OPTIONS if path.parent.name in {*settings.BUILT_GROUPS} - {"algo"}]
# Presets and variants: arguments whose value here is not the default of the constructor.
PRESETS = {
    "data/py_fsrs": {"card", "rating", "time", "duration_ms"},
    "panel/full": {"bins", "kind", "part", "score", "share"},
    "panel/default": {"kind", "part", "score"},
    "panel/quick": {"pooled", "thresholds"},
}


def named(path):
    return f"{path.parent.name}/{path.stem}"


def each(paths, quick=10_000):
    return pytest.mark.parametrize("path", rest_nightly(paths, quick), ids=map(named, paths))


@cache
def compose(path):
    words = [f"{path.parent.name}={path.stem}"]
    return settings.composed(words if path.parent.name == "tracking" else [*words, "tracking=none"])


@each([*OPTIONS[::6], *(path for n, path in enumerate(OPTIONS) if n % 6)], quick=12)
def test_an_option_can_be_chosen_and_says_what_it_is_in_its_first_lines(path):
    assert set(settings.BUILT_GROUPS) <= set(compose(path))
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines[:2] if line.startswith("# ") and "@package" not in line]


@each(BUILT)
def test_an_option_is_built_or_asks_for_what_it_needs(path):
    cfg, choices = compose(path), dict.fromkeys(settings.BUILT_GROUPS, "default")
    choices[path.parent.name] = path.stem
    if not OmegaConf.missing_keys(cfg):
        assert build(cfg, choices)[path.parent.name] is not None
        return
    (missing,) = OmegaConf.missing_keys(cfg)
    with pytest.raises(ConfigError, match=rf"data={path.stem} needs {missing}="):
        resolved(cfg, choices)
    cfg = copy.deepcopy(cfg)
    OmegaConf.update(cfg, missing, "SELECT 1")
    cfg.data.path = "there/is/no such file"
    source = build(cfg, choices)["data"]
    with pytest.raises(ReviewLogError, match="there/is/no such file: no such file"):
        source.read(source.users()[0])


def objects(node):
    """Every part of a configuration that says what it is built by."""
    for value in node.values():
        if isinstance(value, dict):
            yield from objects(value)
    if "_target_" in node:
        yield node


@each(BUILT)
def test_an_option_lists_every_argument_at_its_default(path):
    preset = PRESETS.get(named(path), set())
    for node in objects(OmegaConf.to_container(OmegaConf.load(path))):
        signature = inspect.signature(get_object(node["_target_"])).parameters
        defaults = {name: plain(argument.default) for name, argument in signature.items()}
        given = {name: value for name, value in node.items() if name != "_target_"}
        assert set(given) == set(defaults), node["_target_"]
        for name in set(given) - preset:
            if not isinstance(given[name], dict):
                assert given[name] == defaults[name], name


def plain(default):
    """Write a default as a file of options does."""
    if default is inspect.Parameter.empty:
        return "???"
    return list(default) if isinstance(default, tuple) else default


def test_the_top_level_is_what_the_schema_says_with_a_default_of_each_group():
    assert {path.name for path in CONF.iterdir() if path.is_dir()} == set(settings.GROUPS)
    config, defaults = OmegaConf.load(CONF / "config.yaml"), OmegaConf.structured(settings.Settings)
    scalars = set(defaults) - set(settings.BUILT_GROUPS)
    assert set(config) == scalars | {"defaults", "hydra"}
    assert {name: config[name] for name in scalars} == {name: defaults[name] for name in scalars}
    composed = settings.composed(["tracking=none"])
    assert all("_target_" in composed[group] for group in settings.BUILT_GROUPS)
    built = build(composed, dict.fromkeys(settings.GROUPS, ""))
    assert built["panel"].names == default_panel().names


@each(OVERLAYS)
def test_an_overlay_is_short_and_begins_with_its_command(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# @package _global_"
    words = shlex.split(lines[1].removeprefix("# "))
    assert words[:3] == ["python", "-m", "srs_eval"]
    assert f"{path.parent.name}={path.stem}" in words
    overrides = [word for word in words[3:] if not word.startswith("-")]
    assert settings.mistakes(overrides) == []


def test_every_study_has_its_experiment_or_a_program_of_its_own():
    pages = {
        path.parent.name: path.read_text(encoding="utf-8")
        for path in (ROOT / "experiments").glob("*/README.md")
    }
    overlays = {path.stem for path in (CONF / "experiment").glob("*.yaml")}
    assert overlays <= set(pages)
    for study, text in pages.items():
        programs = re.findall(r"`python (experiments/\S+\.py)`", text)
        assert f"experiment={study}" in text if study in overlays else programs
        assert all((ROOT / program).is_file() for program in programs)


def test_the_leaderboard_has_every_algorithm_that_needs_no_further_package():
    content = OmegaConf.load(CONF / "experiment" / "leaderboard.yaml")
    listed = content.hydra.sweeper.params.algo.split(",")
    further = "oracle fsrs_rs lstm_curves lstm_published transformer nn17 gru gru_p gru_curves"
    every = {path.stem for path in (CONF / "algo").glob("*.yaml")}
    assert sorted(listed) == sorted(every - set(further.split()))
