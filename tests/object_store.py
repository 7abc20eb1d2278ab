"""A simulated S3, whose requests can be made to fail."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class ObjectStore:
    """Counts requests; `failing` says of each by its number whether it fails, and with what."""

    url: str = ""
    requests: int = 0
    lock: Any = field(default_factory=threading.Lock)
    failing: Callable[[int], str] = field(default=lambda number: "")
    inner: Any = None

    def __call__(self, environ, start_response):
        with self.lock:
            self.requests += 1
            failure = self.failing(self.requests)
        if not failure:
            return self.inner(environ, start_response)
        start_response(failure, [("Content-Type", "application/xml")])
        code = failure.partition(" ")[2].replace(" ", "")
        return [f"<Error><Code>{code}</Code></Error>".encode()]


@contextmanager
def object_store(monkeypatch, *buckets):
    """Start a store with these buckets, and point the environment to it."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    store = ObjectStore(inner=DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, store, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    store.url = f"http://127.0.0.1:{server.server_port}"
    for name, value in {
        "AWS_ENDPOINT_URL": store.url,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    from srs_eval import places

    places._filesystem.cache_clear()
    from pyarrow.fs import S3FileSystem

    makes = S3FileSystem(
        endpoint_override=store.url.removeprefix("http://"),
        scheme="http",
        allow_bucket_creation=True,
    )
    for bucket in buckets:
        makes.create_dir(bucket)
    try:
        yield store
    finally:
        places._filesystem.cache_clear()
        server.shutdown()
        thread.join()
        server.server_close()
