"""What holds while a run lasts and is put back after: threads, full float32 products, and signals that wait for a step's end."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import torch


@contextlib.contextmanager
def arithmetic(device: str, chains: int, threads: int | None) -> Iterator[int]:
    """Spread chains over CPU lanes of serial torch, and multiply float32 in full float32; yields the number of lanes.

    `threads` None takes every CPU that the process may use. TF32 (GPU) and bfloat16 products (CPU) are off inside: either would
    spoil an energy difference. torch's new per-backend switches are used, because reading the old ones raises when a
    caller has set the new ones.
    """
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    threads = available if threads is None else threads
    lanes = min(threads, chains) if device == "cpu" else 1
    switches = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)  # type: ignore[attr-defined]  # not in the stubs
    before, precisions = torch.get_num_threads(), [one.fp32_precision for one in switches]
    torch.set_num_threads(max(1, threads // lanes))
    try:
        for one in switches:
            one.fp32_precision = "ieee"
        yield lanes
    finally:
        torch.set_num_threads(before)
        for one, precision in zip(switches, precisions, strict=True):
            one.fp32_precision = precision


@contextlib.contextmanager
def signals() -> Iterator[list[int]]:
    """Collect SIGINT, SIGTERM and SIGUSR1 instead of dying in the middle of a step; a second SIGINT interrupts at once.

    Job schedulers send TERM or USR1 before they end a job. Outside the main thread signals cannot be caught: the list stays empty.
    """
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def note(number: int, frame: Any) -> None:
        if asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.append(number)

    caught = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1") if hasattr(signal, name)]
    before = {number: signal.signal(number, note) for number in caught}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            # None: a handler that was not set from Python cannot be set again from it; the default is the nearest.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        # A signal that came too late to be heeded here is still meant for the caller, who may have more to do. Not SIGINT's default
        # handler, which would throw the finished work away.
        for number in dict.fromkeys(asked):
            handler = before[number]
            if callable(handler) and handler is not signal.default_int_handler:
                handler(number, None)
