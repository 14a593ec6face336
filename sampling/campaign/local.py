"""The engine `local`: a dask LocalCluster, one process with one thread a core, or one process a GPU; a killed worker is replaced."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from data.errors import InputError
from sampling.campaign.dask_engine import through
from sampling.campaign.engines import Event, Plan

LIVES = 2  # workers that one task may take with it; the store counts the tries of its cells as well


def build(options: str) -> Local:
    """`local` takes every core the process may use (over the cells' threads); `local:4` four processes. Raises InputError."""
    if options and not (options.isdigit() and 0 < int(options) <= 4096):
        raise InputError(f"engine = 'local:{options}': give a number of processes, as in local:4")
    return Local(int(options) if options else None)


class Local:
    """All of this machine."""

    detached = False

    def __init__(self, processes: int | None = None):
        self.processes = processes

    def run(self, plan: Plan) -> Iterator[Event]:
        if next(iter(plan.missing()), None) is None:
            return
        with _cluster(self.count(plan), plan.spec.work.threads) as client:
            yield from through(client, plan, devices(plan))

    def count(self, plan: Plan) -> int:
        """Worker processes."""
        if self.processes is not None:
            return self.processes
        if plan.spec.work.device == "cuda":
            return len(devices(plan) or [""])
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
        return max(1, cores // plan.spec.work.threads)


def devices(plan: Plan) -> list[str] | None:
    """A GPU for each process, where the cells ask for one. Raises InputError where there is none."""
    if plan.spec.work.device != "cuda":
        return None
    import torch

    if not torch.cuda.is_available():
        raise InputError("work.device = 'cuda', but torch sees no GPU here: take cpu, or another engine")
    return [f"cuda:{number}" for number in range(torch.cuda.device_count())]


@contextlib.contextmanager
def _cluster(processes: int, threads: int) -> Iterator[Any]:
    """A connected client of a cluster of our own, closed at the end. It listens on this machine's loopback only."""
    import dask
    from distributed import Client, LocalCluster

    settings = {
        "distributed.scheduler.allowed-failures": LIVES,
        "distributed.worker.memory.terminate": False,  # the system knows better when memory is short
        "distributed.worker.memory.pause": False,
        "distributed.comm.timeouts.connect": "60s",
        "distributed.nanny.pre-spawn-environ": {
            name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        },
    }
    with dask.config.set(settings):
        cluster = LocalCluster(
            n_workers=processes,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            memory_limit=0,
            silence_logs=50,
        )
        with cluster, Client(cluster) as client:
            yield client
