"""Every option of the command: composed, built, and as its class says."""

import copy
import inspect
from functools import cache

import pytest
from cases import ROOT, rest_nightly
from hydra.utils import get_object
from omegaconf import OmegaConf

from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.metrics.panel import default_panel
from srs_eval.runs.cli import Settings
from srs_eval.runs.config import GROUPS, build, composed, resolved

CONF = ROOT / "conf"
OPTIONS = {f"{path.parent.name}/{path.stem}": path for path in sorted(CONF.glob("*/*.yaml"))}
# Algorithms have these tests among their own.
BUILT = [name for name, path in OPTIONS.items() if path.parent.name in {*GROUPS} - {"algo"}]
# Presets and variants: arguments whose value here is not the default of the constructor.
PRESETS = {
    **dict.fromkeys(("data/csv", "data/partitioned"), ("path",)),
    "data/py_fsrs": {"card", "rating", "time", "duration_ms", "path"},
    "data/sql": {"query"},
    **dict.fromkeys(("panel/full", "panel/default"), ("thresholds",)),
    "panel/quick": {"pooled"},
}
# Of one reader, of which files have none of these.
OF_QUERIES = ("query", "url", "views")


@cache
def compose(name):
    group, _, option = name.partition("/")
    return composed({"tracking": "none", group: option})


# Of every kind some, the others at night.
@pytest.mark.parametrize("name", rest_nightly(sorted(OPTIONS, key=lambda name: name[::-1]), 12))
def test_an_option_can_be_chosen_and_says_what_it_is_in_its_first_lines(name):
    assert set(GROUPS) <= set(compose(name)[0])
    lines = OPTIONS[name].read_text(encoding="utf-8").splitlines()
    assert [line for line in lines[:2] if line.startswith("# ") and "@package" not in line]


@pytest.mark.parametrize("name", BUILT)
def test_an_option_is_built_or_asks_for_what_it_needs(name):
    cfg, choices = compose(name)
    group, _, option = name.partition("/")
    assert choices[group] == option
    if not OmegaConf.missing_keys(cfg):
        assert build(cfg, choices).choices == choices
        return
    (missing,) = OmegaConf.missing_keys(cfg)
    with pytest.raises(ConfigError, match=f"add {missing}=…"):
        resolved(cfg)
    cfg = copy.deepcopy(cfg)
    OmegaConf.update(cfg, missing, "SELECT 1")
    cfg.data.path = "there/is/no such file"
    source = build(cfg, choices).source
    with pytest.raises(ReviewLogError, match="there/is/no such file: no such file"):
        source.read(source.users()[0])


def objects(node):
    """Every part of a configuration that says what it is built by."""
    for value in node.values():
        if isinstance(value, dict):
            yield from objects(value)
    if "_target_" in node:
        yield node


@pytest.mark.parametrize("name", BUILT)
def test_an_option_lists_every_argument_at_its_default(name):
    option = compose(name)[0][name.partition("/")[0]]
    for node in objects(OmegaConf.to_container(option)):
        signature = inspect.signature(get_object(node["_target_"])).parameters
        defaults = {name: plain(argument.default) for name, argument in signature.items()}
        # Besides its own arguments, every protocol has folds of users.
        shared = {"_target_", "user_folds", *OF_QUERIES}
        if node["_target_"].endswith(".SrsBenchmark"):  # five fits, but in the option of others
            shared |= {"refits", "warm_start"}
            defaults = {}
        if node.get("_partial_"):  # a metric is a function of a tally
            shared |= {"_partial_", "tally"}
            defaults.pop("tally")
        given = {name: value for name, value in node.items() if name not in shared}
        assert set(given) == set(defaults) - {*OF_QUERIES}, node["_target_"]
        for argument in set(given) - {*PRESETS.get(name, ())}:
            if not isinstance(given[argument], dict):
                assert given[argument] == defaults[argument], argument


def plain(default):
    """Write a default as a file of options does."""
    if default is inspect.Parameter.empty:
        return "???"
    return list(default) if isinstance(default, tuple) else default


def test_the_top_level_is_what_the_schema_says_with_a_default_of_each_group():
    folders = {path.name for path in CONF.iterdir() if path.is_dir()} - {"hydra"}
    assert folders == {*GROUPS, "experiment", "sweep"}
    config, defaults = OmegaConf.load(CONF / "config.yaml"), OmegaConf.structured(Settings)
    scalars = set(defaults) - set(GROUPS)
    assert set(config) == scalars | {"defaults", "hydra"}
    assert {name: config[name] for name in scalars} == {name: defaults[name] for name in scalars}
    cfg, choices = composed({"tracking": "none"})
    assert all("_target_" in cfg[group] for group in GROUPS)
    assert build(cfg, choices).panel.names == default_panel().names


def test_the_leaderboard_lists_algorithms_that_need_no_further_package():
    content = OmegaConf.load(CONF / "experiment" / "leaderboard.yaml")
    listed = content.hydra.sweeper.params.algo.split(",")
    every = {path.stem for path in (CONF / "algo").glob("*.yaml")}
    assert len(set(listed)) == len(listed) == 27
    further = "fsrs_rs gru gru_p gru_curves lstm_curves nn17 transformer"
    assert set(listed) <= every - {*further.split()}
