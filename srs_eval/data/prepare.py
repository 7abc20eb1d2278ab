"""A table with the logs of many users, written into a folder with a folder for each of them."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from srs_eval.data.cells import users_of
from srs_eval.data.files import chunks, existing, table_files
from srs_eval.data.options import Columns
from srs_eval.data.reviews import User
from srs_eval.data.table import INCOMPLETE, ReviewTable
from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.places import Place, explained

_ROWS_IN_MEMORY = 1_000_000


def prepare(source: ReviewTable, out: Place) -> tuple[int, int]:
    """Write the rows of each user in the order of the table; return how many users and rows.

    Columns that are read keep their names; a million rows are in memory at a time. Raise
    `ConfigError` if some users are chosen, and `ReviewLogError` if the table cannot be read or the
    folder `out` is not empty or cannot be written.
    """
    if not source.options.takes_everyone:
        raise ConfigError("data.users, sample and first choose from what is written: use them then")
    if source.place is None:
        raise ConfigError("only files are prepared: let the database write CSV or parquet first")
    columns, place = source.columns or Columns(), existing(source.place)
    if "user" in columns.used.values():
        raise ConfigError("a column that is not that of users is called user: rename it")
    if out.kind() == "file" or out.files(recursive=True):
        raise ReviewLogError(str(out), ["is not an empty folder"], "Name another folder.")
    users, rows, number = set[User](), 0, 0
    for file in [place] if place.kind() == "file" else table_files(place):
        first = rows
        for table in chunks(file, columns, _ROWS_IN_MEMORY):
            parts = _by_user(table, columns.user, file, rows - first)
            if not number:
                with (out / INCOMPLETE).writing():
                    pass
            for user, own in parts.items():  # the files of a user are in order of their numbers
                part = out / f"user={quote(str(user), safe='')}" / f"part-{number:06}.parquet"
                with part.writing() as stream:
                    pq.write_table(own, stream, write_page_checksum=True)
            users |= parts.keys()
            rows += len(table)
            number += 1
    if not rows:
        raise ReviewLogError(str(place), ["there are no reviews in it"])
    with explained(out):
        out.filesystem.delete_file((out / INCOMPLETE).path)
    return len(users), rows


def _by_user(
    table: pa.Table, column: str | None, file: Place, first: int
) -> Mapping[User, pa.Table]:
    """Divide rows by user, each in the order of the file, which is named after its only user."""
    if column is None:
        return {file.stem: table}
    names = table.select([column]).to_pandas()[column]
    codes, users = users_of(names, str(file), np.arange(first, first + len(table)))
    rows = pd.Series(codes).groupby(codes).indices
    return {user: table.take(rows[code]).drop_columns(column) for code, user in enumerate(users)}
