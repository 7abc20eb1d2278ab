"""Users evaluated as tasks of a Ray cluster; the one module that knows of Ray."""

from __future__ import annotations

import faulthandler
import hashlib
import logging
import os
import platform
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from srs_eval.compute.interface import OnCrash, Tick, Work, check_chunk
from srs_eval.cpu import VARIABLE, common_level
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.text.console import complain

Result = TypeVar("Result")

# Tasks under way or waiting for each core: what the driver has to hold.
_AHEAD = 2
_AUTHENTICATION = "RAY_AUTH_MODE"
_NOT_STARTED = "compute=ray: Ray could not start a cluster on this machine"
_DIED = "its worker process died on every try (killed, out of memory, or its machine was lost)"


@dataclass(frozen=True, slots=True)
class Ray:
    """Evaluate chunks of users as tasks of a Ray cluster, which machines may join and leave.

    A cluster that is started here asks for a token, which Ray keeps in ``~/.ray/auth_token``.
    All machines need the same code, and the parts of the run at the same path or address.

    Parameters
    ----------
    address : str, optional
        A running cluster, such as ``auto`` or ``ray://head:10001``; None starts one here.
    chunk : int, optional
        Users of a chunk; by default a thousandth of all, at most 50.
    retries : int
        How often a chunk is evaluated again whose process or machine was lost, or has a full disk.
    cpus, gpus : float
        What a chunk occupies of a machine.
    """

    address: str | None = None
    chunk: int | None = None
    retries: int = 3
    cpus: float = 1
    gpus: float = 0

    def __post_init__(self) -> None:
        check_chunk(self.chunk)
        for name, least in (("retries", 0), ("cpus", 0), ("gpus", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"compute.{name}={getattr(self, name)}: at least {least}")

    def map(
        self, work: Work[Result], items: Sequence[Any], *, on_crash: OnCrash[Result], tick: Tick
    ) -> Iterator[Result]:
        """Yield the result of each item as it is done; `tick` is not called.

        Raise `SrsEvalError` if the cluster cannot be reached, or a machine has other code; raise
        `OSError`, with the name of the machine, if one cannot write on any try.
        """
        del tick
        if not items:
            return
        ray = self._connected()
        code = _check_machines(ray)
        from ray.exceptions import RayError, RayTaskError

        sent = ray.put(work)
        # A fit that was interrupted may have left its process in any state: each has but one chunk.
        calls = 0 if getattr(work, "patience", None) is None else 1
        level = common_level()
        task = ray.remote(max_calls=calls)(_evaluate).options(
            num_cpus=self.cpus,
            num_gpus=self.gpus,
            max_retries=self.retries,
            retry_exceptions=[OSError],
            runtime_env={"env_vars": {VARIABLE: level}} if level else None,
        )
        todo = deque(items)
        under_way: dict[Any, Any] = {}
        try:
            while todo or under_way:
                cores = int(ray.cluster_resources().get("CPU", 1))  # machines come and go
                while todo and len(under_way) < max(2, _AHEAD * cores):
                    item = todo.popleft()
                    under_way[task.remote(sent, item, str(Path.cwd()), code)] = item
                ready, _ = ray.wait(list(under_way), num_returns=1, timeout=1)
                for reference in ready:
                    item = under_way.pop(reference)
                    try:
                        result = ray.get(reference)
                    except RayTaskError as error:  # a fault of the program itself
                        raise error.cause or error from error
                    except RayError:
                        result = on_crash(item, _DIED)
                    del reference  # so that Ray forgets the result
                    yield result
        finally:
            for reference in under_way:
                ray.cancel(reference, force=True)

    def _connected(self) -> Any:
        """Connect to the cluster, or start one here that asks for a token."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if self.address is None:  # before Ray is loaded; its ports listen on every interface
            os.environ[_AUTHENTICATION] = "token"
        try:
            import ray
        except ImportError as error:
            raise ConfigError("compute=ray needs Ray: pip install 'srs-eval[ray]'") from error
        if not ray.is_initialized():
            alone = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
            local: dict[str, Any] = {} if self.address else alone
            address = self.address or "local"  # None would be that of RAY_ADDRESS
            if self.address is None:
                _require_token()
            try:
                ray.init(address, logging_level=logging.ERROR, log_to_driver=False, **local)
            except Exception as error:  # Ray raises instances of Exception itself, too
                reason = str(error).strip().partition("\n")[0]
                what = f"compute.address={self.address}" if self.address else _NOT_STARTED
                raise SrsEvalError(f"{what}: {reason or type(error).__name__}") from error
        return ray


def _require_token() -> None:
    """Raise if a cluster of this process would ask for no token."""
    raylet: Any = import_module("ray._raylet")
    token = raylet.AuthenticationMode.TOKEN
    if raylet.get_authentication_mode() != token:  # as it was when the program loaded Ray
        raylet.Config.initialize("")
    if raylet.get_authentication_mode() != token:
        raise SrsEvalError(
            f"compute=ray: {_AUTHENTICATION}=token came too late, because this program has loaded "
            "Ray before; set it in the environment, or start a cluster and give compute.address"
        )


def _evaluate(work: Any, item: Any, folder: str, code: str) -> Any:
    """Do the work for one item on whichever machine this is, be it one that has just joined."""
    _check_code(_code(), code, platform.node())
    with suppress(FileNotFoundError):
        os.chdir(folder)  # paths are relative to it
    patience: float | None = getattr(work, "patience", None)

    def tick(*_: Any) -> None:
        if patience is not None:  # compiled code that runs on beyond it ends the process
            faulthandler.dump_traceback_later(patience, exit=True)

    tick()
    try:
        return work(item, tick)
    except OSError as error:
        reason = f"{error.strerror or error}, on the machine {platform.node()}"
        raise OSError(error.errno, reason, error.filename) from error
    finally:
        faulthandler.cancel_dump_traceback_later()


def _check_code(found: str, expected: str, machine: str) -> None:
    if found != expected:
        raise SrsEvalError(f"compute=ray: {machine} has other code; install the same there")


def _check_machines(ray: Any) -> str:
    """Refuse machines with other code, report several kinds of processor, and return the code."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    about = ray.remote(_machine)
    told = ray.get(
        [
            about.options(
                num_cpus=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
            ).remote()
            for node in nodes
        ]
    )
    here, _ = _machine()
    for node, (code, _) in zip(nodes, told, strict=True):
        _check_code(code, here, node["NodeManagerAddress"])
    processors = sorted({processor for _, processor in told})
    if len(processors) > 1 and not common_level():
        complain(f"several kinds of processor, which may differ in the last bit: {processors}")
    return here


def _machine() -> tuple[str, str]:
    """Return the digest of the code of srs_eval on a machine, and its processor."""
    return _code(), _processor()


@cache
def _code() -> str:
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _processor() -> str:
    """Return the name of the processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
