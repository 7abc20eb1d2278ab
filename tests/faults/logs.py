"""Review logs, changed: tables by impossible values or by bytes; Anki's by SQL or by bytes."""

import hashlib
import sqlite3
import tempfile
import zipfile
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from anki_files import DAY, START, collection
from judging import right, too_long

from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.data.options import Columns
from srs_eval.data.table import ReviewTable
from srs_eval.errors import SrsEvalError

_BYTES = (b"\0", b"\xff", b"\xfe\xff", b'"', b",", b"\r", b"\n", b"\x1b", b"9" * 400, b";;;", b"\t")


def table_log(kind, random, folder):
    """Change bytes of a table, and read it."""
    path, n, rows = folder / f"log.{kind}", random.randint(5, 60), None
    columns = {"card": random.choices(("1", "2", "card 3"), k=n), "who": "ann"}
    columns |= {"rating": random.choices(range(1, 5), k=n), "day": np.cumsum([1] * n)}
    log = pd.DataFrame(columns)
    if kind == "csv":
        log.to_csv(path, index=False)
    else:
        pq.write_table(pa.Table.from_pandas(log), path, write_page_checksum=True)
    path.write_bytes(damaged(random, path.read_bytes()))
    if kind == "parquet":
        with suppress(pa.ArrowException, OSError, UnicodeDecodeError):  # of a damaged column's name
            rows = int(pq.read_metadata(path).num_rows)
    source = ReviewTable(path, Columns(day="day", user="who"))
    return judge(source, path, lambda log: broken(log, rows))


def damaged(random, content):
    """Change, insert, remove or repeat a few bytes."""
    for _ in range(random.choice((1, 1, 2, 5))):
        place = random.randrange(len(content) or 1)
        end = place + random.choice((0, 1, 8, 100, len(content)))
        inserted = random.choice((b"", bytes([random.randrange(256)]), random.choice(_BYTES)))
        if random.random() < 0.4:  # a single bit
            end, inserted = place + 1, bytes([content[place] ^ 1 << random.randrange(8)])
        content = content[:place] + inserted + content[end:]
        if not content:
            break
    return content


def broken(log, rows):
    """Return the invariants that a log violates."""
    problems = []
    if rows is not None and len(log) + sum(log.left_out.values()) != rows:
        problems.append(f"{len(log)} of {rows} rows kept, {dict(log.left_out)} left out")
    if not np.isin(log.rating, (1, 2, 3, 4)).all():
        problems.append("ratings outside 1 to 4")
    if (log.day[1:] < log.day[:-1]).any() or log.elapsed_days.min() < -1:
        problems.append("days run backwards")
    return problems


def judge(source, path, check):
    """Read a log, and see whether it is right or rightly refused, and nothing else is changed."""
    before = hashlib.sha256(path.read_bytes()).digest()
    copies, outcome = set(Path(tempfile.gettempdir()).iterdir()), "accepted"
    try:
        user, *others = source.users()  # more of a damaged name of the column
        log = source.read(user)
        problems = [] if others else check(log)
    except SrsEvalError as error:
        problems, outcome = too_long(str(error)), "clear error"
        if path.name not in str(error):
            problems.append(f"the message does not name the file: {str(error)[:200]}")
    if hashlib.sha256(path.read_bytes()).digest() != before:
        problems.append("the source was changed")
    if left := set(Path(tempfile.gettempdir()).iterdir()) - copies:
        problems.append(f"left in the temporary folder: {sorted(map(str, left))[:3]}")
    return right(problems, outcome)


OTHER_KINDS = {
    "list": lambda count: pa.array([[1]] * count),
    "struct": lambda count: pa.array([{"a": 1}] * count),
    "map": lambda count: pa.array([[(1, 2)]] * count, pa.map_(pa.int8(), pa.int8())),
    "binary": lambda count: pa.array([b"\xff"] * count),
    "nothing": pa.nulls,
    "far moments": lambda count: pa.array([2**62] * count, pa.timestamp("us", "Europe/Vienna")),
    "durations": lambda count: pa.array([1] * count, pa.duration("s")),
    "infinity": lambda count: pa.array([float("inf")] * count),
}


_CELLS = ("null", "'text'", "x'00ff'", "1e30", "-1", "9e999", "2", "9223372036854775807", "1.5")


def anki_log(random, folder):
    """Change a collection, perhaps in a package, and read it."""
    path, rows = folder / "ann.anki2", None
    answers = [
        ((START + day * DAY + card) * 1000, card, random.randint(1, 4), 2500, 4000, int(day > 0))
        for day in range(random.randint(1, 20))
        for card in range(1, 6)
    ]
    key = random.choice(("id integer primary key", "id integer", "id"))
    collection(path, answers, settings={"schedVer": 2, "rollover": 4}, key=key)
    family = random.choice(("cells", "bytes", "package"))
    if family == "cells":
        with closing(sqlite3.connect(path)) as database, database:
            for _ in range(random.randint(1, 3)):
                column = random.choice(("id", "cid", "ease", "factor", "time", "type"))
                change = f"update or ignore revlog set {column} = {random.choice(_CELLS)}"
                with suppress(sqlite3.Error):
                    database.execute(f"{change} where rowid = {random.randint(1, 5)}")
            rows = int(database.execute("select count(*) from revlog").fetchone()[0])
    elif family == "bytes":
        path.write_bytes(damaged(random, path.read_bytes()))
    else:
        path = _package(random, folder, path)
    return judge(AnkiCollection(path), path, lambda log: broken(log, rows))


def _package(random, folder, inside):
    """Pack a collection into an invalid package."""
    path = folder / f"ann.{random.choice(('apkg', 'colpkg'))}"
    names = ("collection.anki2", "collection.anki21", "../collection.anki2", "/etc/x", "media")
    with zipfile.ZipFile(path, "w", random.choice((0, 8, 12, 14))) as zipped:
        for name in random.sample(names, random.randint(1, 3)):
            content = inside.read_bytes()
            zipped.writestr(name, damaged(random, content) if random.random() < 0.3 else content)
    if random.random() < 0.6:
        path.write_bytes(damaged(random, path.read_bytes()))
    return path
