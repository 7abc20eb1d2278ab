"""The frame of every page of a site: head, path to the page, and controls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from srs_eval.text.escapes import for_html, html_head

ASSETS = "assets"
STYLES = ("page.css", "site.css")
# In the order in which they use each other.
SCRIPTS = (
    *("special.js", "inference.js", "standing.js", "sort.js"),
    *("ui.js", "data.js", "charts.js", "parts.js"),
)
_MADE_BY = "Made by srs_eval. Intervals are of 99 %, from paired differences over users."


def page(
    title: str,
    body: Iterable[str],
    *,
    root: str,
    crumbs: Sequence[tuple[str, str]] = (),
    script: str = "",
    board: str = ".",
    model: str = "",
) -> str:
    """Format a page.

    Parameters
    ----------
    title : str
        Its heading.
    body : iterable of str
        Lines of HTML.
    root : str
        Address of the folder of the site, from the page.
    crumbs : sequence of (str, str)
        Name and address of the pages above this one.
    script : str
        Its script, "" for a page without any.
    board : str
        Address of the folder of its board, from the page.
    model : str
        Name of its submission.
    """
    files = [f"{root}/{ASSETS}/{name}" for name in (*STYLES, *(SCRIPTS if script else ()))]
    files += [f"{board}/board.js", f"{root}/{ASSETS}/{script}"] if script else []
    above = "".join(link(name, address) for name, address in crumbs)
    path = f'<nav class="crumbs">{above}<span>{for_html(title)}</span></nav>' if crumbs else ""
    noscript = "<noscript><p class='note'>The tables need JavaScript; the raw data do not.</p>"
    return "\n".join(
        [
            *html_head(title, files=files),
            f'<main data-board="{for_html(board)}" data-model="{for_html(model)}">{path}',
            f"<h1>{for_html(title)}</h1>",
            *([noscript + "</noscript>"] if script else []),
            *body,
            f"</main><footer>{_MADE_BY}</footer></body></html>",
            "",
        ]
    )


def link(text: str, address: str) -> str:
    """Format a link within the site."""
    return f'<a href="{for_html(address)}">{for_html(text)}</a>'


def web_link(address: str) -> str:
    """Format an address that a stranger has written: a link if it leads to the web, else text."""
    if not address.startswith(("https://", "http://")):
        return for_html(address)
    return f'<a href="{for_html(address)}" rel="noopener nofollow">{for_html(address)}</a>'


def path_of(name: str) -> str:
    """Return a name as part of an address."""
    return quote(name, safe="")


def select(label: str, key: str, options: Mapping[str, str], *, models: bool = False) -> str:
    """Format a control with some options; the script of the page adds models."""
    items = "".join(
        f'<option value="{for_html(value)}">{for_html(text)}</option>'
        for value, text in options.items()
    )
    listed = " data-models" if models else ""
    return (
        f'<label>{for_html(label)}<select id="{key}" data-state="{key}"{listed}>'
        f"{items}</select></label>"
    )


def controls(*items: str) -> str:
    """Format a row of controls, after the choices of metric and of weighting."""
    weightings = {"users": "each user once", "reviews": "each review once"}
    usual = select("metric", "metric", {}), select("weighting", "weighting", weightings)
    return f'<div class="controls">{"".join((*usual, *items))}</div>'


def described(facts: Mapping[str, str]) -> str:
    """Format names with their values, which are HTML; empty values are left out."""
    items = "".join(
        f"<dt>{for_html(name)}</dt><dd>{value}</dd>" for name, value in facts.items() if value
    )
    return f'<dl class="about">{items}</dl>'


def by_version(version: str) -> list[tuple[int, int, str]]:
    """Return the key that sorts versions: numbers by size, and before words."""
    parts = re.split(r"(\d+)", version)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]
