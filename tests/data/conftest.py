from pathlib import Path

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

ROOT = Path(__file__).parents[2]


@pytest.fixture
def build_option():
    """Build what an option of the group data describes, the way the command does."""

    def build(option, **changes):
        described = OmegaConf.load(ROOT / "conf" / "data" / f"{option}.yaml")
        return instantiate(OmegaConf.merge(described, changes), _convert_="all")

    return build


@pytest.fixture
def csv(tmp_path):
    """Write the lines of a table; return its path."""

    def write(*lines, name="log.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write
