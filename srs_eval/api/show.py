"""How results look in a terminal and in a notebook: small, and readable in light and dark."""

from __future__ import annotations

from collections.abc import Sequence

from srs_eval.comparison.table import Table


class Shown:
    """Shows itself as lines of text, and in a notebook in the colours of the page."""

    __slots__ = ()

    def _shown(self) -> tuple[str, Sequence[str], Table]:
        """Return a title, notes, and a table, which is left out if it is empty."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Return what is shown as text."""
        title, notes, table = self._shown()
        return "\n".join([title, *notes, *(["", table.write()] if table.rows else [])])

    def _repr_html_(self) -> str:
        from srs_eval.comparison.page import render  # Jinja: only in a notebook

        title, notes, table = self._shown()
        return render("api/show.html", title=title, notes=notes, table=table)
