"""A small campaign through a real Slurm of one node, with everything that goes wrong on clusters; the numbers stay those of a quiet run.

The Slurm is started by the test itself (slurm_node.py); where it cannot be, the test is skipped with its reason.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from campaign.slurm_node import Node, Unavailable, reason_to_skip, slurm_node

from sampling.campaign import catalog, engines, runner, slurm_submit, spec
from sampling.campaign.claims import FILE as CLAIM
from sampling.campaign.engines import Task
from sampling.campaign.source import parse_toml
from sampling.campaign.store import RESULT, RUN, Store, wanted
from sampling.run import Run

PATIENCE = 240.0  # on a busy machine; nothing waits so long on an idle one

SPEC = """
title = "through Slurm"
[grid]
data = "digits"
classes = "even/odd"
subset_seed = 1
P = 12
N1 = {N1}
T = {T}
[sampling]
chains = 4
warmup = 100
draws = {draws}
[slurm]
partition = "low"
cells_per_job = {cells_per_job}
grace_seconds = 20
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    if reason := reason_to_skip():
        pytest.skip(reason)
    with contextlib.ExitStack() as stack:
        try:
            found = stack.enter_context(slurm_node(tmp_path_factory.mktemp("slurm"), kill_wait=15))
        except Unavailable as error:
            pytest.skip(str(error))
        yield found


@pytest.fixture
def client(node: Node, monkeypatch: pytest.MonkeyPatch) -> Node:
    """The node, with the test's own environment set as a login shell's would be."""
    for name, value in node.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return node


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a filesystem of its own, of 6 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m,mode=0755", "saddlecheck-test", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no small filesystem can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


class Campaign:
    """A campaign's folder as the runner sees it: catalogue, store, plan."""

    def __init__(self, folder: Path, text: str):
        self.folder, self.store = folder, Store(folder)
        self.spec = spec.validate(parse_toml(text))
        catalog.write(folder, self.spec)
        self.cells = list(catalog.read(catalog.current(folder)[0]))

    @property
    def ids(self) -> list[str]:
        return [cell.id for cell in self.cells]

    def states(self) -> dict[str, str]:
        return {cell.id: wanted(self.store.read(cell.id, deep=True), cell).state for cell in self.cells}

    def run(self, engine: str) -> list[engines.Event]:
        events: list[engines.Event] = []
        runner.run(None, self.folder, engine, report=events.append)
        return events

    def claimed(self, *, but: frozenset[str] = frozenset(), seconds: float = PATIENCE) -> tuple[str, int]:
        """Wait until somebody works on a cell (not one of `but`); its id, and the process that does."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for name in self.ids:
                with contextlib.suppress(OSError, ValueError):
                    if name not in but and not (self.store.place(name) / RESULT).exists():
                        pid = json.loads((self.store.place(name) / CLAIM).read_text())["pid"]
                        os.kill(pid, 0)
                        return name, pid
            time.sleep(0.02)
        raise TimeoutError(f"nobody works on a cell: {self.states()}\n{self.logs()}")

    def logs(self) -> str:
        return "\n".join(f"--- {path.name}\n{path.read_text()}" for path in sorted((self.folder / "logs").glob("*")))

    def element_of(self, pid: int) -> str:
        """The array element that a process belongs to, as Slurm names it."""
        words = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
        told = dict(word.split("=", 1) for word in words if "=" in word)
        return f"{told['SLURM_ARRAY_JOB_ID']}_{told['SLURM_ARRAY_TASK_ID']}"

    def table(self) -> dict[str, tuple[dict[str, object], bytes]]:
        """What the campaign is for: of each cell the numbers of its summary, and the bytes of every array of its Run."""
        found: dict[str, tuple[dict[str, object], bytes]] = {}
        for name in self.ids:
            record = self.store.read(name, deep=True)
            assert record.body is not None, f"{record}\n{self.logs()}"
            run = Run.load(self.store.place(name) / RUN)
            groups = (run.series, run.sums, {"basis": run.basis, "block": run.block}, run.extra)
            arrays = b"".join(
                key.encode() + np.ascontiguousarray(group[key]).tobytes() for group in groups for key in sorted(group)
            )
            found[name] = (record.body["numbers"], arrays)
        return found


def quiet_run(folder: Path, text: str) -> tuple[Campaign, subprocess.Popen[bytes]]:
    """The same cells in a folder of their own, worked on by one process that nobody disturbs; it has just been started."""
    campaign = Campaign(folder, text)
    command = [sys.executable, "-m", "sampling.campaign.worker", str(folder), "--cells", ",".join(campaign.ids)]
    return campaign, subprocess.Popen(command, stdout=subprocess.DEVNULL)


def _login_shell(folder: Path, text: str, barrier, answers) -> None:
    campaign = Campaign(folder, text)
    barrier.wait()
    answers.put([event.data.get("cells", 0) for event in campaign.run("slurm") if event.kind == "submitted"])


def test_a_campaign_survives_what_happens_on_clusters(client: Node, small_disk: Path, tmp_path: Path) -> None:
    """Two shells submit at once; a worker is killed with -9, a job preempted, one warned of its time limit, one cancelled; two results
    are spoilt; the disk is full for a while. Every cell ends once, and bit for bit as in an undisturbed run."""
    text = SPEC.format(N1=6, T="[0.05, 0.2, 0.8]", draws=200, cells_per_job=2)
    campaign = Campaign(small_disk / "campaign", text)
    quiet, process = quiet_run(tmp_path / "quiet", text)

    # Two login shells.
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(2), context.Queue()
    shells = [context.Process(target=_login_shell, args=(campaign.folder, text, barrier, answers)) for _ in range(2)]
    for shell in shells:
        shell.start()
    submitted = sorted(answers.get(timeout=PATIENCE) for _ in shells)
    for shell in shells:
        shell.join(30)
    assert submitted == [[], [3]]
    assert len(client.queue()) == 2

    # One worker is killed with -9: its job requeues itself.
    killed, pid = campaign.claimed()
    element = campaign.element_of(pid)
    os.kill(pid, signal.SIGKILL)
    # The other is preempted by a job that takes the whole machine. Stopped, it is still at work by then: Slurm wakes what it ends.
    _, pid = campaign.claimed(but=frozenset({killed}))
    os.kill(pid, signal.SIGSTOP)
    assert campaign.element_of(pid) != element
    client("sbatch", "--partition=high", "--exclusive", "--output=/dev/null", "--wrap=sleep 0.1")
    wait_for(lambda: "PREEMPTION" in campaign.logs(), campaign.logs)
    # Of those that are there again one gets the warning that Slurm sends before a time limit.
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), campaign.logs)
    warned, pid = campaign.claimed()
    os.kill(pid, signal.SIGSTOP)
    client("scancel", "--signal=USR1", "--batch", campaign.element_of(pid))
    wait_for(lambda: "told to stop (USR1)" in campaign.logs(), campaign.logs)
    os.kill(pid, signal.SIGCONT)
    client.wait_for_empty_queue(PATIENCE)
    said = campaign.logs()
    assert "worker ended with status 137" in said
    assert "told to stop (TERM)" in said
    assert "worker ended with status 75" in said
    assert set(campaign.states().values()) <= {"done", "inconclusive"}, said
    assert (campaign.store.place(warned) / RESULT).exists()

    # Two results are spoilt, one in the middle, one cut off.
    spoilt = campaign.ids[:2]
    run = campaign.store.place(spoilt[0]) / RUN
    data = bytearray(run.read_bytes())
    data[len(data) // 2] ^= 1
    run.write_bytes(data)
    summary = campaign.store.place(spoilt[1]) / RESULT
    summary.write_bytes(summary.read_bytes()[:100])
    untouched = {name: (campaign.store.place(name) / RESULT).stat().st_mtime_ns for name in campaign.ids[2:]}
    assert list(campaign.states().values()).count("damaged") == 2
    # The disk is full by the time the job runs.
    client("scontrol", "update", "PartitionName=low", "State=DOWN")
    campaign.run("slurm")
    ballast = small_disk / "ballast"
    fill(ballast, leave=50_000)
    client("scontrol", "update", "PartitionName=low", "State=UP")
    client.wait_for_empty_queue(PATIENCE)
    assert list(campaign.states().values()).count("damaged") == 2
    assert "worker ended with status 74" in campaign.logs()
    ballast.unlink()

    # Running again, from the shell that stays: just what is missing, also after a site has cancelled it.
    client("scontrol", "update", "PartitionName=low", "State=DOWN")
    assert [event.data["cells"] for event in campaign.run("slurm") if event.kind == "submitted"] == [2]
    for job in client.queue():
        client("scancel", job["id"])
    client.wait_for_empty_queue(PATIENCE)
    client("scontrol", "update", "PartitionName=low", "State=UP")
    events = campaign.run("slurm:wait")
    assert [event.data["cells"] for event in events if event.kind == "submitted"] == [2], events
    assert not client.queue()
    assert untouched == {name: (campaign.store.place(name) / RESULT).stat().st_mtime_ns for name in campaign.ids[2:]}

    assert process.wait(PATIENCE) == 0
    assert_equal(campaign, quiet)


def assert_equal(disturbed: Campaign, quiet: Campaign) -> None:
    """Cell for cell, number for number, bit for bit."""
    found, wanted = disturbed.table(), quiet.table()
    assert found.keys() == wanted.keys()
    for name in wanted:
        assert found[name][0] == wanted[name][0], name
        assert found[name][1] == wanted[name][1], name


def wait_for(condition: Callable[[], bool], told: Callable[[], str], seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, told()
        time.sleep(0.05)


WALL = 0x40000000  # __WALL of waitpid(2)


def hang(pid: int) -> None:
    """Make a process hang until it is killed with SIGKILL, as ptrace can: before it ends a job Slurm wakes what is merely stopped."""
    seize, interrupt = 0x4206, 0x4207
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    ptrace.restype = ctypes.c_long
    for request in (seize, interrupt):
        if ptrace(request, pid, None, None) == -1:
            pytest.skip(f"no process can be made to hang here: ptrace: {os.strerror(ctypes.get_errno())}")


def fill(path: Path, leave: int) -> None:
    """Leave so many bytes of the filesystem."""
    told = os.statvfs(path.parent)
    path.write_bytes(bytes(told.f_bavail * told.f_frsize - leave))
    told = os.statvfs(path.parent)
    assert told.f_bavail * told.f_frsize <= leave


@pytest.mark.slow
def test_time_limits(client: Node, tmp_path: Path) -> None:
    """Two jobs reach their time limit, of a minute, Slurm's least. One heeds the warning, writes its checkpoint and is requeued; the other
    hangs and is killed, and running again brings its cell. The numbers are those of a quiet run."""
    text = SPEC.format(N1="[6, 9]", T=0.05, draws=600, cells_per_job=1) + 'time = "00:01:00"\n'
    campaign = Campaign(tmp_path / "campaign", text)
    quiet, process = quiet_run(tmp_path / "quiet", text)
    assert process.wait(PATIENCE) == 0
    campaign.run("slurm")
    hung, first = campaign.claimed()
    hang(first)
    heeding, second = campaign.claimed(but=frozenset({hung}))
    # A stopped process heeds no signal until it goes on: so it is still at work when the warning comes.
    os.kill(second, signal.SIGSTOP)
    elements = campaign.element_of(first), campaign.element_of(second)

    def log(element: str) -> str:
        return next((campaign.folder / "logs").glob(f"*-{element}.log")).read_text()

    wait_for(lambda: "told to stop (USR1)" in log(elements[1]), campaign.logs)
    os.kill(second, signal.SIGCONT)
    os.waitpid(first, WALL)
    client.wait_for_empty_queue(PATIENCE)
    assert "DUE TO TIME LIMIT" in log(elements[0])
    assert "worker ended with status 75" in log(elements[1])
    assert "restart 1" in log(elements[1])
    states = campaign.states()
    assert states[hung] == "missing"
    assert states[heeding] in ("done", "inconclusive")
    events = campaign.run("slurm:wait")
    assert [event.data["cells"] for event in events if event.kind == "submitted"] == [1]
    assert_equal(campaign, quiet)


def test_what_slurm_is_asked_for(client: Node, tmp_path: Path) -> None:
    """The words of a spec arrive at Slurm as meant: partition, time limit, GPUs of a class, arrays cut at the site's largest."""
    if not client.gpus:
        pytest.skip("no device files can be made here, so that Slurm has no GPUs")
    text = (
        SPEC.format(N1=6, T=1.0, draws=100, cells_per_job=1)
        + 'time = "00:10:00"\n[slurm.class.gpu]\ntime = "00:20:00"\ngpus = 1\n'
    )
    campaign = Campaign(tmp_path / 'a folder\'s "name" $(touch owned) é', text)
    client("scontrol", "update", "PartitionName=low", "State=DOWN")
    try:
        tasks = [Task(f"{index:032x}", "gpu" if index % 5 == 0 else "cpu", 1.0) for index in range(30)]
        done = slurm_submit.submit_missing(campaign.folder, lambda: iter(tasks), campaign.spec.slurm)
        # MaxArraySize is 8 here: 24 elements in 3 arrays, and 6.
        assert (len(done.jobs), done.cells) == (4, 30)
        told = [client("scontrol", "show", "job", job) for job in done.jobs]
        assert all("Partition=low" in one for one in told)
        assert ["TimeLimit=00:20:00" in one for one in told] == [False, False, False, True]
        assert ["gres:gpu:1" in one or "gres/gpu=1" in one for one in told] == [False, False, False, True]
        assert all("Requeue=1" in one for one in told)
        again = slurm_submit.submit_missing(campaign.folder, lambda: iter(tasks), campaign.spec.slurm)
        assert (again.jobs, again.queued) == ((), 30)
        assert not list(tmp_path.rglob("owned"))
    finally:
        for job in {row["id"].partition("_")[0] for row in client.queue()}:
            client("scancel", job)
        client("scontrol", "update", "PartitionName=low", "State=UP")
    client.wait_for_empty_queue(PATIENCE)
