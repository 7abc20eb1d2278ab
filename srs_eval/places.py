"""Files and folders by their address: a path, or a URI of an object store."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from urllib.parse import unquote_plus

from pyarrow import fs

from srs_eval.errors import ConfigError, ReviewLogError

SCHEMES = ("s3", "gs", "abfss", "hf")

# A scheme has at least two letters; a single one is a drive of Windows.
_URI = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]+:/")
_HIDDEN = re.compile(r"(^|[/\\])\.")
# scheme://user:password@host, a token as the user of a web server, and options of an address
_SECRET = re.compile(
    r"://[^/@\s:]*:(?!\d+[/?])\S+@|https?://[^/@\s:]+@"
    r"|[?&;=][\w-]*(?:password|passwd|pwd|token|secret|sig|signature|accountkey)=[^&;\s]+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder, by a text alone, so that worker processes can be sent it.

    The address is a path, or ``s3://BUCKET/KEY``, ``gs://BUCKET/KEY``,
    ``abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH`` or ``hf://datasets/OWNER/NAME/PATH``.
    Credentials are read from the environment, as the store's own tools do.

    >>> place = Place.of("s3://bucket/logs/") / "part.parquet"
    >>> place.address, place.name, place.is_remote
    ('s3://bucket/logs/part.parquet', 'part.parquet', True)
    """

    address: str

    @classmethod
    def of(cls, address: str | Path | Place) -> Place:
        """Return the place of an address; raise `ConfigError` if it is none, or has credentials."""
        text = str(address)
        if not _URI.match(text):
            return cls(str(Path(text).expanduser()))
        scheme, _, rest = text.strip().partition("://")
        if scheme.lower() == "file":
            return cls(str(Path(re.sub("^[^/]*", "", rest))))
        root = rest.partition("/")[0]
        if scheme.lower() not in SCHEMES or not root:
            schemes = ", ".join(f"{name}://" for name in (*SCHEMES, "file"))
            raise ConfigError(f"{text}: no such kind of address; there are {schemes} and paths")
        if ":" in root or ("@" in root and scheme.lower() != "abfss"):
            raise ConfigError(
                f"{scheme}://…: addresses are saved with results: leave credentials to the "
                "environment, as the tools of the store read them"
            )
        return cls(f"{scheme.lower()}://{rest.rstrip('/')}")

    def __str__(self) -> str:
        return self.address

    def __truediv__(self, name: str) -> Place:
        """Return a place below this folder."""
        return Place(f"{self.address}/{name}" if self.is_remote else str(Path(self.address, name)))

    @property
    def is_remote(self) -> bool:
        """Whether it is in an object store."""
        return _URI.match(self.address) is not None

    @property
    def local(self) -> Path:
        """The path of a place on this machine."""
        if self.is_remote:
            raise ConfigError(f"{self.address}: expected a path, not an address")
        return Path(self.address)

    @property
    def name(self) -> str:
        """Last part of the address."""
        return (PurePosixPath if self.is_remote else Path)(self.address).name

    @property
    def stem(self) -> str:
        """Last part of the address without its ending."""
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        """Last ending of the name, such as ``.parquet``, in lower case."""
        return PurePosixPath(self.name).suffix.lower()

    @property
    def parent(self) -> Place:
        """The folder that it is in."""
        return Place(self.address.rpartition("/")[0] if self.is_remote else str(self.local.parent))

    @property
    def filesystem(self) -> Any:
        """The `pyarrow.fs.FileSystem` that it is in."""
        root = "/".join(self.address.split("/")[:3]) if self.is_remote else ""
        with explained(self):
            return _filesystem(root, os.getpid())

    @property
    def path(self) -> str:
        """Path within `filesystem`."""
        if not self.is_remote:
            return self.address
        scheme, _, path = self.address.partition("://")
        # abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH
        return re.sub("@[^/]*", "", path, count=1) if scheme == "abfss" else path

    def kind(self) -> Literal["file", "folder", ""]:
        """Return what is there; "" if nothing is, or a pipe or device."""
        with explained(self):
            entry = self.filesystem.get_file_info(self.path)
        return "file" if entry.is_file else "folder" if entry.type.name == "Directory" else ""

    def files(self, *, recursive: bool = False) -> list[Place]:
        """List the files of a folder by name, but for hidden ones; none if there is no folder."""
        return [place for place, is_file in self._entries(recursive=recursive) if is_file]

    def folders(self) -> list[Place]:
        """List the folders of a folder in the same way."""
        return [place for place, is_file in self._entries() if not is_file]

    def _entries(self, *, recursive: bool = False) -> list[tuple[Place, bool]]:
        selector = fs.FileSelector(self.path, allow_not_found=True, recursive=recursive)
        with explained(self):
            entries = self.filesystem.get_file_info(selector)
        names = {each.path[len(self.path) :].strip("/\\"): each.is_file for each in entries}
        return [(self / name, names[name]) for name in sorted(names) if not _HIDDEN.search(name)]

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Open a file to read bytes at any position: a `pyarrow.NativeFile`."""
        with explained(self), self.filesystem.open_input_file(self.path) as file:
            yield file

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """Open a file to write bytes, and make the folders above it."""
        with explained(self):
            if not self.is_remote:
                self.local.parent.mkdir(parents=True, exist_ok=True)
            with self.filesystem.open_output_stream(self.path) as file:
                yield file


@contextmanager
def explained(place: Place) -> Iterator[None]:
    """Raise what the system, a store or its client reports as a `ReviewLogError` of one line."""
    try:
        yield
    except ImportError as error:
        needed = "needs the package huggingface_hub: run `pip install 'srs-eval[hub]'`"
        raise ConfigError(f"{place}: {needed}") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error) or type(error).__name__
        raise ReviewLogError(str(place), [reason.splitlines()[0]]) from error


@lru_cache(maxsize=16)
def _filesystem(root: str, _process: int) -> Any:
    """Connect to what is behind the first part of an address, once in each process."""
    return fs.FileSystem.from_uri(root)[0] if root else fs.LocalFileSystem()


def has_secret(text: str) -> bool:
    """Whether a text has an address with a password or a token.

    >>> has_secret("postgresql://me:pass@host/db"), has_secret("postgresql://me@host/db")
    (True, False)
    """
    return any(_SECRET.search(each) for each in (text, unquote_plus(text)))


def masked(text: str) -> str:
    """Return a text without the passwords of its addresses.

    >>> masked("postgresql://me:pass@host/db")
    'postgresql://…@host/db'
    """
    return _SECRET.sub(lambda secret: "://…@" if secret[0].endswith("@") else "", text)
