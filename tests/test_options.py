"""Every option of the command is built."""

import copy
from functools import cache

import pytest
from cases import ROOT
from omegaconf import OmegaConf

from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.metrics.panel import default_panel
from srs_eval.runs.cli import Settings
from srs_eval.runs.config import GROUPS, build, composed, resolved

CONF = ROOT / "conf"
OPTIONS = {f"{path.parent.name}/{path.stem}": path for path in sorted(CONF.glob("*/*.yaml"))}
# Algorithms have these tests among their own.
BUILT = [name for name, path in OPTIONS.items() if path.parent.name in {*GROUPS} - {"algo"}]


@cache
def compose(name):
    group, _, option = name.partition("/")
    return composed({"tracking": "none", group: option})


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
