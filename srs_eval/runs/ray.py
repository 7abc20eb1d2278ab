"""Users evaluated as tasks of a Ray cluster; the one module that knows of Ray."""

from __future__ import annotations

import faulthandler
import logging
import math
import os
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from srs_eval.cpu import VARIABLE, common_level
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.runs.compute import Lost, Tick
from srs_eval.runs.config import code_hash

_AHEAD = 2  # Tasks under way or waiting for each core
_DIED = "its worker process died on every try (killed, out of memory, or its machine was lost)"


@dataclass(frozen=True, slots=True)
class Ray:
    """Evaluate users as tasks of a Ray cluster, which machines may join and leave.

    A cluster that is started here listens to this machine alone and asks for a token. All machines
    need the same code, and the data at the same path or address.

    Parameters
    ----------
    address : str, optional
        A running cluster, such as ``auto`` or ``ray://head:10001``; None starts one here.
    retries : int
        How often a user is evaluated again whose process or machine was lost.
    cpus, gpus : float
        What a user occupies of a machine.
    """

    address: str | None = None
    retries: int = 3
    cpus: float = 1
    gpus: float = 0

    def __post_init__(self) -> None:
        if min(self.retries, self.cpus, self.gpus) < 0:
            raise ConfigError(f"{self}: at least 0 of each")

    def map(self, work: Any, items: Iterable[Any], tick: Tick, patience: float) -> Iterator[Any]:
        """As in `Serial`, but `tick` is called by no machine.

        Raise `SrsEvalError` if the cluster cannot be reached, or a machine has other code.
        """
        ray = self._connected()
        from ray.exceptions import RayError, RayTaskError

        level = common_level()
        # a fit that was interrupted may have left its process in any state
        task = ray.remote(max_calls=1 if patience < math.inf else 0)(_result).options(
            num_cpus=self.cpus,
            num_gpus=self.gpus,
            max_retries=self.retries,
            runtime_env={"env_vars": {VARIABLE: level}} if level else None,
        )
        fixed = ray.put(work), str(Path.cwd()), code_hash(), patience
        todo, under_way = iter(items), dict[Any, Any]()
        try:
            while True:
                most = max(2, _AHEAD * int(ray.cluster_resources().get("CPU", 1)))
                for item in islice(todo, max(most - len(under_way), 0)):  # machines come and go
                    under_way[task.remote(item, *fixed)] = item
                if not under_way:
                    return
                for reference in ray.wait(list(under_way), num_returns=1, timeout=1)[0]:
                    item = under_way.pop(reference)
                    try:
                        result = ray.get(reference)
                    except RayTaskError as error:  # a fault of the program itself
                        raise error.cause or error from error
                    except RayError:
                        result = Lost(item, _DIED)
                    yield result
        finally:
            for reference in under_way:
                ray.cancel(reference, force=True)

    def _connected(self) -> Any:
        """Connect to the cluster, or start one here."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        local: dict[str, Any] = {}
        if self.address is None:
            os.environ["RAY_AUTH_MODE"] = "token"  # read when Ray is imported
            local = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        try:
            import ray

            if not ray.is_initialized():
                ray.init(
                    self.address or "local",  # None would be that of RAY_ADDRESS
                    logging_level=logging.ERROR,
                    log_to_driver=False,
                    **local,
                )
        except Exception as error:  # Ray raises instances of Exception itself, too
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise SrsEvalError(f"compute=ray: {reason}") from error
        return ray


def _result(item: Any, work: Any, folder: str, code: str, patience: float) -> Any:
    """Do the work for one item on whichever machine this is, be it one that has just joined."""
    if code_hash() != code:
        raise SrsEvalError(f"compute=ray: {platform.node()} has other code; install the same there")
    if Path(folder).is_dir():
        os.chdir(folder)  # paths are relative to it

    def tick(*_: object) -> None:
        if patience < math.inf:  # compiled code that runs on beyond it ends the process
            faulthandler.dump_traceback_later(patience, exit=True)

    tick()
    try:
        return work(item, tick)
    finally:
        faulthandler.cancel_dump_traceback_later()
