"""What is left of commands when a test ends, however it ends."""

import os
import signal
from contextlib import suppress

import pytest
from sessions import STARTED


@pytest.fixture(autouse=True)
def _nothing_goes_on():
    yield
    for command in STARTED:
        for pid in command.processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    STARTED.clear()
