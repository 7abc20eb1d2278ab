"""What in an untrusted database is more than a table, and would run code of its author."""

from __future__ import annotations

import re
from typing import Any

_FAULTS_QUOTED = 5
_KINDS = {"view": "view", "virtual": "virtual table"}


def programs_in_sqlite(connection: Any, query: str) -> list[str]:
    """Return what a query names in a file of SQLite that is more than an ordinary table.

    Triggers are none of it: they run when something is written.
    """
    connection.execute("pragma trusted_schema = off")
    # As SQLite has understood the file, whatever the texts and names in it claim.
    tables = connection.execute("pragma table_list").fetchall()
    if not tables:
        return ["this version of SQLite, older than 3.37, cannot tell its tables from its views"]
    found = []
    for name, kind in (row[1:3] for row in tables if _is_named(row[1], query)):
        quoted = name.replace('"', '""')
        if kind in _KINDS:
            found.append(f"the query names the {_KINDS[kind]} {name[:40]!r}")
        elif kind == "table":
            columns = connection.execute(f'pragma table_xinfo("{quoted}")')
            computed = [f"{row[1][:40]} …" for row in columns if row[6]][:1]
            found += [f"the table {name[:40]!r} has computed columns: {each}" for each in computed]
    return found[:_FAULTS_QUOTED]


def programs_in_duckdb(connection: Any, query: str) -> list[str]:
    """Return the views and macros of a file of DuckDB that a query names."""
    statement = """
        select 'view', view_name from system.main.duckdb_views() where not internal
        union select 'macro', function_name from system.main.duckdb_functions() where not internal
        order by 2
    """
    found = [
        f"the query names the {kind} {name[:40]!r}"
        for kind, name in connection.execute(statement).fetchall()
        if _is_named(name, query)
    ]
    return found[:_FAULTS_QUOTED]


def _is_named(name: str, query: str) -> bool:
    """Whether a query may name this: a word of the name is in it, or the name has no words."""
    words, used = (set(re.findall(r"\w+", text.lower())) for text in (name, query))
    return not words or bool(words & used)
