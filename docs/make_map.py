"""Draw docs/images/map.svg, the layers of srs_eval, from [tool.importlinter] in pyproject.toml.

python docs/make_map.py
"""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAP = ROOT / "docs" / "images" / "map.svg"
_WIDTH, _LEFT, _BOX, _ROW, _GAP = 760, 64, 30, 42, 12
_STYLE = """
  text { font: 14px system-ui, sans-serif; fill: #1f2328; text-anchor: middle }
  rect { fill: #ddf4ff; stroke: #54aeff }
  .side { fill: #59636e; font-size: 12px }
  path { stroke: #59636e; fill: none; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } rect { fill: #121d2f; stroke: #388bfd }
    .side { fill: #9198a1 } path { stroke: #9198a1 }
  }"""


def layers() -> list[list[str]]:
    """Return the packages of each layer, from the top layer to the bottom one."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    lines = next(each["layers"] for each in contracts if each["type"] == "layers")
    return [line.replace(" ", "").replace(":", "|").split("|") for line in lines]


def drawn(rows: list[list[str]]) -> str:
    """Return the picture as SVG: one row per layer, one box per package."""
    height = len(rows) * _ROW + 8
    shapes = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'role="img" aria-label="Layers of srs_eval">\n<style>{_STYLE}\n</style>',
        f'<path d="M24 16 V{height - 16} m-6 -9 l6 9 l6 -9"/>',
        f'<text class="side" transform="translate(46 {height / 2:g}) rotate(-90)">imports</text>',
    ]
    for row, packages in enumerate(rows):
        width = (_WIDTH - _LEFT - 4 - _GAP * (len(packages) - 1)) / len(packages)
        for column, name in enumerate(packages):
            x, y = _LEFT + column * (width + _GAP), row * _ROW + 6
            shapes.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_BOX}" rx="6"/>'
                f'<text x="{x + width / 2:.1f}" y="{y + 20}">{name}</text>'
            )
    return "\n".join([*shapes, "</svg>\n"])


if __name__ == "__main__":
    MAP.write_text(drawn(layers()), encoding="utf-8")
