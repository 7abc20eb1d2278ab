"""Secrets in the addresses of databases, which must not be saved with a run."""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

# Before the host, as SQLAlchemy finds it there.
_PASSWORD = re.compile(r"://[^:/@]*:[^@]+@")
# Among the options of a driver, or in a text of options that is one of them.
_OPTION = re.compile(
    r"[?&;](\w*(?:password|passwd|passphrase|pwd|secret|token|api_?key|private_key|_base64))"
    r"\s*=\s*([^&;]+)",
    re.IGNORECASE,
)


def has_secret(address: str) -> bool:
    """Whether an address has a password, or another secret among its options.

    Examples
    --------
    >>> has_secret("postgresql://me:word@host/db"), has_secret("mysql://me@host/db?password=word")
    (True, True)
    >>> has_secret("postgresql://me@host:5432/db?sslmode=require")
    False
    """
    return bool(_PASSWORD.search(address)) or bool(secret_options(address))


def secret_options(address: str) -> list[str]:
    """Return the values of the options of an address that are secret."""
    return [value for _, value in _OPTION.findall(unquote_plus(address))]
