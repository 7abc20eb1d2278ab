"""Files and folders, on this machine or in an object store, by their address."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar

from srs_eval.errors import ConfigError, PlaceError

SCHEMES = ("s3", "gs", "abfss", "hf")

# A scheme has at least two letters; a single one is a drive of Windows.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_ATTEMPTS = 8
_CREDENTIALS = {
    "s3": "AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_REGION; for stores "
    "of other companies AWS_ENDPOINT_URL too",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or `gcloud auth application-default login`",
    "abfss": "AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET, or `az login`",
    "hf": "HF_TOKEN, or `hf auth login`",
}
# What object stores and their clients write, and what it means. The first that fits counts.
_MEANINGS = (
    (r"no_?such_?bucket|bucket.*not found|containernotfound|RepositoryNotFound",
     "there is no such bucket or repository, or it may not be seen with these credentials"),
    (r"access_?denied|forbidden|\b40[13]\b|permission|unauthori[sz]ed|authorizationfailure|gated",
     "permission is denied"),
    (r"invalid_?access_?key|signature_?does_?not|expired_?token|invalid_?client|token.*(expired|"
     r"invalid)|credential|unauthenticated",
     "the credentials are missing, wrong or expired"),
    (r"permanent_?redirect|\b301\b|region|authorizationheadermalformed",
     "the bucket is in another region"),
    (r"network_?connection|curlcode|could not resolve|connection|timed? ?out|unreachable",
     "the store cannot be reached"),
    (r"slow_?down|throttl|service_?unavailable|internal_?(failure|error)|\b50[0234]\b|\b429\b",
     "the store fails again and again"),
)  # fmt: skip
_DENIED = tuple(meaning for _, meaning in _MEANINGS[:4])
_PASSING = tuple(meaning for _, meaning in _MEANINGS[4:])
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Entry:
    """A file in a folder."""

    place: Place  # Its address
    size: int  # In bytes
    # When it was last written, in nanoseconds since 1970; 0 where the store does not say
    changed: int


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder at a path or at an address of an object store.

    A value of text alone, so that worker processes and machines can be sent it. Credentials are
    read from the environment, as the store's own tools do, and never from the address.

    The address is a path, or ``s3://BUCKET/KEY``, ``gs://BUCKET/KEY``,
    ``abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH`` or ``hf://datasets/OWNER/NAME/PATH``.
    `of` raises `ConfigError` if it is a URI of another kind, or has credentials in it.

    >>> place = Place.of("s3://bucket/logs/") / "part.parquet"
    >>> place.address, place.name, place.is_remote
    ('s3://bucket/logs/part.parquet', 'part.parquet', True)
    """

    address: str

    @classmethod
    def of(cls, given: str | Path | Place) -> Place:
        """Return the place of a path or an address."""
        if isinstance(given, Place):
            return given
        text = str(given)
        if not is_uri(text):
            return cls(str(Path(given).expanduser()))
        scheme = scheme_of(text)
        if scheme == "file":
            raise ConfigError(f"{text}: is a URI; write the path alone")
        if scheme not in SCHEMES or "://" not in text:
            known = ", ".join(f"{known}://" for known in SCHEMES)
            raise ConfigError(f"{text}: no such kind of address; there are {known} and paths")
        root = text.partition("://")[2].partition("/")[0]
        if (scheme != "abfss" and "@" in root) or ":" in root:
            raise ConfigError(
                f"{scheme}://…: no credentials in addresses, which are saved with results; set "
                f"{_CREDENTIALS[scheme]}"
            )
        return cls(text.rstrip("/"))

    def __str__(self) -> str:
        return self.address

    def __truediv__(self, name: str) -> Place:
        """Return a place below this folder."""
        return Place(f"{self.address}/{name}" if self.is_remote else str(Path(self.address, name)))

    @property
    def is_remote(self) -> bool:
        """Whether it is in an object store."""
        return is_uri(self.address)

    @property
    def local(self) -> Path:
        """The path of a place on this machine."""
        if self.is_remote:
            raise ConfigError(f"{self.address}: expected a path, not an address")
        return Path(self.address)

    @property
    def name(self) -> str:
        """Last part of the address."""
        return PurePosixPath(self.address).name if self.is_remote else self.local.name

    @property
    def parent(self) -> Place:
        """The folder that it is in."""
        above = self.address.rpartition("/")[0]
        return Place(above if self.is_remote else str(self.local.parent))

    @property
    def stem(self) -> str:
        """Last part of the address without its ending."""
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        """Last ending of the name, such as ``.parquet``, in lower case."""
        return PurePosixPath(self.name).suffix.lower()

    @property
    def filesystem(self) -> Any:
        """The `pyarrow.fs.FileSystem` that it is in; one for each bucket and process."""
        root = "/".join(self.address.split("/")[:3]) if self.is_remote else ""
        with explained(self):
            return _filesystem(root, os.getpid())

    @property
    def path(self) -> str:
        """Path within `filesystem`."""
        scheme, _, rest = self.address.partition("://")
        if not self.is_remote:
            return self.address
        if scheme == "abfss":  # CONTAINER@ACCOUNT.dfs.core.windows.net/PATH
            container, _, below = rest.partition("@")
            return "/".join(filter(None, [container, below.partition("/")[2]]))
        return rest

    def kind(self) -> Literal["file", "folder", ""]:
        """Return what is there; "" if nothing is."""
        from pyarrow.fs import FileType

        with explained(self):
            found = self.filesystem.get_file_info(self.path).type
        kinds: dict[Any, Literal["file", "folder"]]
        kinds = {FileType.File: "file", FileType.Directory: "folder"}
        return kinds.get(found, "")

    def exists(self) -> bool:
        """Whether there is a file or a folder."""
        return bool(self.kind())

    def entry(self) -> Entry | None:
        """Return size and time of a file; None if there is none."""
        with explained(self):
            found = self.filesystem.get_file_info(self.path)
        return Entry(self, found.size, found.mtime_ns or 0) if found.is_file else None

    def files(self, *, recursive: bool = False, hidden: bool = False) -> list[Entry]:
        """Return the files of a folder by name, in one request per thousand files or so.

        Names that begin with a dot are left out unless `hidden`, as are those in folders of such
        a name. A folder that does not exist has no files.
        """
        from pyarrow.fs import FileSelector

        selector = FileSelector(self.path, allow_not_found=True, recursive=recursive)
        with explained(self):
            found = [each for each in self.filesystem.get_file_info(selector) if each.is_file]
        below = {each.path[len(self.path) :].lstrip("/\\"): each for each in found}
        return [
            Entry(self / name, below[name].size, below[name].mtime_ns or 0)
            for name in sorted(below)
            if hidden or not any(part.startswith(".") for part in re.split(r"[/\\]", name))
        ]

    def names(self) -> list[str]:
        """Return the names of the files and folders in a folder, but those with a dot first."""
        from pyarrow.fs import FileSelector

        with explained(self):
            found = self.filesystem.get_file_info(FileSelector(self.path, allow_not_found=True))
        return sorted(each.base_name for each in found if not each.base_name.startswith("."))

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Open a file to read bytes at any position: a `pyarrow.NativeFile`."""
        with explained(self), self.filesystem.open_input_file(self.path) as file:
            yield file

    def read(self) -> bytes:
        """Read a whole file."""

        def content() -> bytes:
            with self.reading() as file:
                return bytes(file.read())

        return patiently(content)

    def write(self, content: bytes) -> None:
        """Write a file, which is there as a whole or not at all."""
        with self.writing() as path:
            path.write_bytes(content)

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[Path]:
        """Return a path to write to, and put the file in its place once it is complete.

        A file of that name is replaced; folders above it are made. If the body raises, nothing
        changes. `durable` is as for `renamed`.
        """
        if not self.is_remote:
            self.local.parent.mkdir(parents=True, exist_ok=True)
            beside = self.local.with_name(f".{self.name}.{os.getpid()}.partial")
            with renamed(beside, self.local, durable=durable):
                yield beside
            return
        with tempfile.TemporaryDirectory(prefix="srs_eval_upload_") as folder:
            copy = Path(folder, "whole")
            yield copy

            def upload() -> None:
                # Objects appear when the stream is closed, and not at all after a failed write.
                with (
                    explained(self),
                    copy.open("rb") as source,
                    self.filesystem.open_output_stream(self.path) as target,
                ):
                    shutil.copyfileobj(source, target, 8 << 20)

            patiently(upload)

    def remove(self) -> None:
        """Remove a file or a folder with all that is in it, if it is there."""

        def removed() -> None:
            with explained(self):
                kind = self.kind()
                if kind == "folder":
                    self._remove_folder()
                elif kind:
                    self.filesystem.delete_file(self.path)

        patiently(removed)

    def _remove_folder(self) -> None:
        try:
            self.filesystem.delete_dir(self.path)
        except FileNotFoundError:  # Google's store has no folder once its files are gone
            if self.kind():
                raise


@contextmanager
def renamed(beside: Path, path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Return a path in the same folder to write to, which is renamed once the file is complete.

    It is put on the disk before it gets its name, so that a power cut leaves the old file or the
    new one, never a part. Without `durable` that holds for a kill alone.
    """
    try:
        yield beside
        if durable:
            put_on_disk(beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def put_on_disk(path: Path) -> None:
    """Wait until a file, or the names of the files in a folder, would survive a power cut."""
    is_folder = path.is_dir()  # Windows cannot open them, nor some networks put them on the disk
    with suppress(*([OSError] if is_folder else [])):
        opened = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def is_uri(text: str) -> bool:
    """Whether a text is a URI, which `pathlib` would treat as a folder of that name.

    >>> is_uri("s3://bucket/runs"), is_uri("runs/s3"), is_uri("C:/runs")
    (True, False, False)
    """
    return _URI.match(text.strip()) is not None


def scheme_of(text: str) -> str:
    """Return the scheme of a URI in lower case."""
    return text.strip().partition(":")[0].lower()


@contextmanager
def explained(place: Place) -> Iterator[None]:
    """Raise what an object store reports as a `PlaceError`; errors of local files as they are."""
    try:
        yield
    except PlaceError:
        raise
    except ImportError as error:
        raise ConfigError(
            f"{place}: needs the package huggingface_hub: run `pip install 'srs-eval[hub]'`"
        ) from error
    except OSError as error:
        if not place.is_remote:
            raise
        raise _meaning(place, error) from error


def patiently(use: Callable[[], _Value]) -> _Value:
    """Call a function again if the store fails; clients retry requests, mostly.

    Arrow does not retry a read of fewer bytes than the store's message about the failure has, nor
    each kind of request.
    """
    for _ in range(2):
        try:
            return use()
        except PlaceError as error:
            if not error.what.startswith(_PASSING):
                raise
    return use()


def _meaning(place: Place, error: OSError) -> PlaceError:
    """Return an error that says in words what a store reported."""
    reported = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    if isinstance(error, FileNotFoundError):
        return PlaceError(place.address, "there is no such file", "Check the address.")
    described = f"{type(error).__name__} {reported}"
    meaning = next(
        (words for pattern, words in _MEANINGS if re.search(pattern, described, re.IGNORECASE)),
        "cannot be used",
    )
    hint = "Try again, or resume."
    if meaning in _DENIED:
        hint = f"Credentials are read from {_CREDENTIALS[scheme_of(place.address)]}."
    return PlaceError(place.address, f"{meaning} ({reported})", hint)


@lru_cache(maxsize=16)
def _filesystem(root: str, _process: int) -> Any:
    """Connect to what is behind the first part of an address."""
    from pyarrow import fs

    if not root:
        return fs.LocalFileSystem()
    if scheme_of(root) != "s3":
        return fs.FileSystem.from_uri(root)[0]
    variable = os.environ.get
    endpoint = variable("AWS_ENDPOINT_URL_S3") or variable("AWS_ENDPOINT_URL")
    region = variable("AWS_REGION") or variable("AWS_DEFAULT_REGION")
    scheme, _, host = endpoint.rpartition("://") if endpoint else ("", "", "")
    if not region and not endpoint and not variable("AWS_PROFILE"):
        with suppress(OSError):  # then the store says that the bucket is elsewhere
            region = fs.resolve_s3_region(root.partition("://")[2])
    return fs.S3FileSystem(
        region=region,
        endpoint_override=host or None,
        scheme=scheme or "https",
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        allow_delayed_open=True,  # small objects in one request
        request_timeout=60,
        connect_timeout=10,
    )
