"""A simulated S3, whose requests can be made to fail."""

import logging
import threading
import urllib.request
from contextlib import contextmanager
from types import SimpleNamespace


@contextmanager
def object_store(monkeypatch, bucket):
    """Start a store with a bucket, and point the environment to it.

    Its `failing` says of each request by its number whether it fails, and with what.
    """
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    from srs_eval import places

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    inner, lock = DomainDispatcherApplication(create_backend_app), threading.Lock()
    store = SimpleNamespace(requests=0, failing=lambda number: "")

    def answer(environ, start_response):
        with lock:
            store.requests += 1
            failure = store.failing(store.requests)
        if not failure:
            return inner(environ, start_response)
        start_response(failure, [("Content-Type", "application/xml")])
        return [f"<Error><Code>{failure[4:].replace(' ', '')}</Code></Error>".encode()]

    server = make_server("127.0.0.1", 0, answer, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    urllib.request.urlopen(urllib.request.Request(f"{url}/{bucket}", method="PUT")).close()
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "secret")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    places._filesystem.cache_clear()
    try:
        yield store
    finally:
        places._filesystem.cache_clear()
        server.shutdown()
        thread.join()
        server.server_close()
