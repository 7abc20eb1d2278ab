"""How Sphinx makes the site of these pages: ``python -m sphinx -W -c docs . site``."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sphinx import addnodes

from srs_eval import __version__

sys.path.append(str(Path(__file__).parent))
from make_algorithms import classes

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/srs-eval/srs_eval"

project = "srs_eval"
author = copyright = "The srs_eval authors"
version = release = __version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
root_doc = "docs/index"
# Pages lie where readers of the repository find them, so the sources are the whole repository.
include_patterns = ["docs/**", "experiments/**.md", "benchmarks/*.md", "examples/**", "*.md"]
exclude_patterns = ["README.md", "AGENTS.md", "**/.*", "site/**", "outputs/**", "multirun/**"]

html_theme = "pydata_sphinx_theme"
html_title = "srs_eval"
html_theme_options = {
    "github_url": REPOSITORY,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    # The table of algorithms needs the room, and links to each class.
    "secondary_sidebar_items": {"**": ["page-toc"], "docs/algorithms": []},
    "navbar_center": [],  # every page is in the sidebar
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
html_extra_path = ["llms.txt"]  # at the root of the site
html_css_files = ["figures.css"]
html_sidebars = {"**": ["globaltoc"]}
html_show_sourcelink = False
html_copy_source = False
copybutton_exclude = ".linenos, .gp, .go"

# Networks are described without PyTorch, which the site does not need.
autodoc_mock_imports = [name for name in ("torch",) if find_spec(name) is None]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
default_role = "literal"
napoleon_google_docstring = False
napoleon_use_rtype = False

myst_heading_anchors = 4
myst_heading_slug_func = "github"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 600
nb_merge_streams = True

# Figures are drawn on white: in the dark their brightness is turned over and their hues kept.
# Screenshots, and drawings that have dark colours of their own, stay as they are.
FIGURES = """
html[data-theme=dark] .bd-content img:not([src*=mlflow_], [src*=report], [src$=".svg"]) {
  filter: invert(1) hue-rotate(180deg); mix-blend-mode: screen; background: none !important;
}
html[data-theme=dark] .bd-content div.cell_output img { background: none; }
"""
# Tables are small, and names in code break where a line has no room for them.
ROOM = """
.bd-article table.table { font-size: 0.85em; }
.bd-article dt.sig span.pre { white-space: normal; overflow-wrap: anywhere; }
@media (max-width: 768px) {
  .bd-article :is(h1, h2, h3, h4, p, li, dd) > code span.pre {
    white-space: normal; overflow-wrap: anywhere;
  }
}
"""
# The sidebar has all pages: no more is needed than their names.
SIDEBAR = """
.bd-sidebar-primary h3 { display: none; }
.bd-sidebar-primary ul { list-style: none; padding-left: 0.8rem; }
.bd-sidebar-primary .caption { font-weight: bold; margin-bottom: 0.3rem; }
.bd-sidebar-primary li a { color: inherit; text-decoration: none; }
.bd-sidebar-primary li a:hover, .bd-sidebar-primary li a.current { text-decoration: underline; }
"""


def write_style(app: Sphinx) -> None:
    """Write the style of figures where the pages look for it."""
    place = Path(app.outdir) / "_static" / "figures.css"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(FIGURES + ROOM + SIDEBAR, encoding="utf-8")


def adapt(_app: Sphinx, page: str, text: list[str]) -> None:
    """Let links to what is no page lead to the repository."""
    folder = (ROOT / page).parent

    def absolute(link: re.Match[str]) -> str:
        target, _, anchor = link[1].partition("#")
        path = (folder / target).resolve()
        if not target or path.suffix in (".md", ".ipynb", ".png", ".svg") or not path.exists():
            return link[0]
        kind = "tree" if path.is_dir() else "blob"
        where = f"{REPOSITORY}/{kind}/main/{path.relative_to(ROOT).as_posix()}"
        return f"]({where}#{anchor})" if anchor else f"]({where})"

    text[0] = re.sub(r"\]\((?![a-z]+:)([^)\s]+)\)", absolute, text[0])


def describe_algorithms(_app: Sphinx, page: str, text: list[str]) -> None:
    """Add what the classes say of themselves below the table of algorithms."""
    if page == "docs/algorithms":
        text[0] += f"\n{classes()}"


def unlink_words(_app: Sphinx, page: nodes.document) -> None:
    """Leave plain words in the types of docstrings, such as "table" without links."""
    for link in list(page.findall(addnodes.pending_xref)):
        if link["reftype"] == "class" and link["reftarget"].islower():
            link.replace_self(link.children)


def lead_home(app: Sphinx, error: Exception | None) -> None:
    """Let the address of the site itself lead to the first page."""
    if error is None and app.builder.format == "html":
        home = '<!doctype html><meta http-equiv="refresh" content="0; url=docs/index.html">\n'
        (Path(app.outdir) / "index.html").write_text(home, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.connect("builder-inited", write_style)
    app.connect("source-read", describe_algorithms)
    app.connect("source-read", adapt)
    app.connect("doctree-read", unlink_words)
    app.connect("build-finished", lead_home)
