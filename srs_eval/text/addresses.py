"""Secrets in addresses of databases, servers and stores, which are neither saved nor printed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote, unquote_plus

# Addresses within a text; a password may hold anything but the characters that end a word.
_ADDRESS = re.compile(r"""[A-Za-z][\w+.-]*://[^\s'"<>]+""")
_START = re.compile(r"\s*[A-Za-z][\w+.-]*:/")
# Databases let a password have a slash, others let it have an @.
_BEFORE_HOST = re.compile(r"://([^:/@]*)(?::(.*))?@")
_PORT = re.compile(r"\d{1,5}/")
# A name alone is a secret there; elsewhere it is that of an account or a container.
_NAME_IS_TOKEN = ("http", "https", "s3", "gs", "hf")
# Among the options of a driver, or in a text of options that is one of them.
_OPTION = re.compile(r"(?:^|[?&;#])\s*([\w .-]+?)\s*=\s*(\{[^}]*\}|[^&;]*)")
_SECRET_NAME = re.compile(
    r"pass(word|wd|phrase|code)?$|pwd$|secret|token$|credential|signature$|^sig$|_base64$"
    r"|^jwt$|(api|access|account|private|sharedaccess|storage|secret|auth)[ _-]?key$",
    re.IGNORECASE,
)
_SHORT = 8  # Letters of a secret that may also be an ordinary word or number
_INSTEAD = {
    "tracking.uri": "the environment variable MLFLOW_TRACKING_URI",
    "data.url": "an environment variable, such as WAREHOUSE, and give data.url=env:WAREHOUSE",
}
_TRACKING = ("MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN")


def has_secret(text: str) -> bool:
    """Whether a text is, or has in it, an address with a password, a token or another secret.

    >>> has_secret("postgresql://me:word@host/db"), has_secret("mysql://me@host/db?password=word")
    (True, True)
    >>> has_secret("https://TOKEN@host"), has_secret("postgresql://me@host:5432/db?sslmode=require")
    (True, False)
    """
    parts = [text] if _START.match(text) else []
    return any(any(_secrets(part)) for part in [*parts, *_ADDRESS.findall(text)])


def secret_problem(key: str) -> str:
    """Return why an option that has a secret is refused, and where the secret belongs."""
    instead = _INSTEAD.get(key, "the environment variables of that server or store")
    return (
        f"{key} has a password or a token, which would be saved with the run; put it into {instead}"
    )


def masked(text: str, *addresses: str | None) -> str:
    """Replace the secrets of addresses by ``***``, in each way that they may be written.

    >>> masked("no answer from bob:p@ss@host", "http://bob:p%40ss@host")
    'no answer from bob:***@host'
    """
    found = {secret for address in addresses if address for secret in _secrets(address)}
    ways = {
        way
        for secret in found
        for plain in (secret, unquote(secret), unquote_plus(secret))
        for way in (
            plain,
            quote(plain),
            quote(plain, safe=""),
            quote_plus(plain),
            repr(plain)[1:-1],
        )
    }
    for way in sorted(filter(None, ways), key=len, reverse=True):
        # A short one is left in words and numbers that merely look like it.
        pattern = rf"(?<=[:/=]){re.escape(way)}(?=@|&|;|$)" if len(way) < _SHORT else re.escape(way)
        text = re.sub(pattern, "***", text)
    return text


def without_secrets(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """Replace the secrets of this process's environment, which libraries put into messages."""
    known = [value for value in environment.values() if "://" in value]
    known += [f"x://:{environment[name]}@" for name in _TRACKING if name in environment]
    return masked(text, *known)


def _secrets(address: str) -> Iterator[str]:
    """Yield the secrets of an address, wherever a driver may see their ends."""
    scheme = address.partition(":")[0].strip().lower()
    before = _BEFORE_HOST.search(address)
    if before is not None:
        user, password = before.groups()
        is_web = scheme in _NAME_IS_TOKEN
        if password is None and is_web and user:
            yield user
        if password and not (is_web and _PORT.match(password)):
            yield password
            yield password.partition("@")[0]
            yield re.split("[/?#]", password)[0].rpartition("@")[0]
    yield from _secret_options(address)
    yield from _secret_options(unquote_plus(address))


def _secret_options(text: str) -> Iterator[str]:
    for name, value in _OPTION.findall(text):
        if value.strip("{}*") and _SECRET_NAME.search(name):
            yield value
            yield value.strip("{}")
        elif "=" in unquote_plus(value):  # a text of options
            yield from _secret_options(unquote_plus(value))
