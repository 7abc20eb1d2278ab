"""Every option of the command is built."""

import pytest
from cases import ROOT
from omegaconf import OmegaConf

from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.runs.config import GROUPS, build, composed, resolved

# Algorithms have this test among their own.
BUILT = [
    (path.parent.name, path.stem)
    for path in sorted((ROOT / "conf").glob("*/*.yaml"))
    if path.parent.name in {*GROUPS} - {"algo"}
]


@pytest.mark.parametrize(("group", "option"), BUILT)
def test_an_option_is_built_or_asks_for_what_it_needs(group, option):
    cfg, choices = composed({"tracking": "none", group: option})
    assert choices[group] == option
    if not OmegaConf.missing_keys(cfg):
        assert build(cfg, choices).choices == choices
        return
    (missing,) = OmegaConf.missing_keys(cfg)
    with pytest.raises(ConfigError, match=f"add {missing}=…"):
        resolved(cfg)
    OmegaConf.update(cfg, missing, "SELECT 1")
    cfg.data.path = "there/is/no such file"
    source = build(cfg, choices).source
    with pytest.raises(ReviewLogError, match="there/is/no such file: no such file"):
        source.read(source.users()[0])
