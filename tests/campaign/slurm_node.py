"""A real Slurm of one node for tests: munged, slurmctld and slurmd with all their files in one folder, no systemd, no cgroups.

It starts what is installed (Debian: slurm-wlm and munge; `.ci/run` installs them where it can) and installs nothing itself.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMMANDS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "sinfo")
# The daemons live in sbin, which is not on every PATH.
PATHS = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
START_SECONDS = 40.0

# Preemption: jobs of `high` requeue those of `low`. KillWait, cred_expire and the intervals are short so that a requeued job starts
# again within seconds: Slurm holds it back until the credential of its last start has expired (2 minutes by default).
CONFIGURATION = """\
ClusterName=saddlecheck
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2,requeue_delay=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
SwitchType=switch/none
InactiveLimit=0
KillWait={kill_wait}
OverTimeLimit=0
MinJobAge=300
MaxArraySize={max_array}
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
{gres}
NodeName=localhost NodeAddr=127.0.0.1 CPUs=2 RealMemory=1000 {node_gres} State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=0
PartitionName=high Nodes=ALL Default=NO MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


class Unavailable(RuntimeError):
    """Slurm cannot be started here; the message is the reason, fit for pytest.skip."""


@dataclass(frozen=True)
class Node:
    """A running one-node Slurm. `environment` is what a client (sbatch, squeue, ...) needs beside the caller's own."""

    folder: Path
    gpus: int

    @property
    def environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": PATHS}

    def __call__(self, *command: str, timeout: float = 30.0) -> str:
        """stdout of one Slurm command; raises CalledProcessError, with stderr in it, where that fails."""
        done = subprocess.run(
            command, env=os.environ | self.environment, capture_output=True, text=True, timeout=timeout, check=False
        )
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        return done.stdout.strip()

    def queue(self) -> list[dict[str, str]]:
        """Jobs that Slurm still holds, one row an array element: id, name, state, partition, reason."""
        rows = self("squeue", "--array", "--noheader", "--format=%i|%j|%T|%P|%r").splitlines()
        return [dict(zip(("id", "name", "state", "partition", "reason"), row.split("|"), strict=True)) for row in rows]

    def wait_for_empty_queue(self, seconds: float) -> None:
        """Raises TimeoutError with the queue and the ends of the daemons' logs."""
        end = time.monotonic() + seconds
        while held := self.queue():
            if time.monotonic() > end:
                raise TimeoutError(f"jobs left after {seconds:.0f} s: {held}\n{_logs(self.folder)}")
            time.sleep(0.2)

    def wait_until_running(self, name: str | None = None, seconds: float = 30.0) -> dict[str, str]:
        """The first running job (of that name)."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for row in self.queue():
                if row["state"] == "RUNNING" and name in (None, row["name"]):
                    return row
            time.sleep(0.1)
        raise TimeoutError(f"no running job {name or ''} after {seconds:.0f} s: {self.queue()}\n{_logs(self.folder)}")


def reason_to_skip() -> str | None:
    """Why Slurm cannot be started here, or None."""
    missing = [name for name in COMMANDS if shutil.which(name, path=PATHS) is None]
    if missing:
        return f"Slurm is not installed (no {', '.join(missing)}): apt-get install slurm-wlm munge"
    if os.geteuid() != 0:
        return "a one-node Slurm needs root"
    return None


@contextlib.contextmanager
def slurm_node(folder: Path, *, kill_wait: int = 5, max_array: int = 8) -> Iterator[Node]:
    """Start Slurm with all its files in `folder` (which must be root's, and not writable for others) and stop it on exit.

    kill_wait  seconds between SIGTERM and SIGKILL of a job that ends before its time
    max_array  MaxArraySize, small so that a test sees more cells than one array takes
    Raises Unavailable where that does not work; the message carries the ends of the daemons' logs.
    """
    if reason := reason_to_skip():
        raise Unavailable(reason)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    gpus = _fake_gpus(folder)
    controller, node = _free_ports()
    (folder / "slurm.conf").write_text(
        CONFIGURATION.format(
            folder=folder,
            controller=controller,
            node=node,
            kill_wait=kill_wait,
            max_array=max_array,
            gres="GresTypes=gpu" if gpus else "",
            node_gres=f"Gres=gpu:{gpus}" if gpus else "",
        )
    )
    (folder / "gres.conf").write_text(
        f"NodeName=localhost Name=gpu File={folder}/fakegpu[0-{gpus - 1}]\n" if gpus else ""
    )
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nConstrainCores=no\nConstrainRAMSpace=no\n")
    for name in ("state", "spool"):
        (folder / name).mkdir(mode=0o755, exist_ok=True)
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    found = Node(folder, gpus)
    try:
        _start(
            folder,
            "munged",
            "--force",
            f"--key-file={key}",
            f"--socket={folder}/munge.socket",
            f"--pid-file={folder}/munged.pid",
            f"--log-file={folder}/munged.log",
            f"--seed-file={folder}/munged.seed",
        )
        _start(folder, "slurmctld", "-c", "-f", str(folder / "slurm.conf"))
        _start(folder, "slurmd", "-c", "-N", "localhost", "-f", str(folder / "slurm.conf"))
        _wait_for_node(found)
        yield found
    finally:
        with contextlib.suppress(subprocess.SubprocessError, OSError):
            _cancel_all(found)
        for name in ("slurmd", "slurmctld", "munged"):
            _stop(folder / f"{name}.pid")


def _start(folder: Path, name: str, *arguments: str) -> None:
    command = shutil.which(name, path=PATHS)
    assert command is not None
    environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": PATHS}
    # A daemon must not hold the test's own pipes open: its output goes to a file.
    with open(folder / f"{name}.start", "wb") as out:
        done = subprocess.run(
            [command, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            timeout=START_SECONDS,
            check=False,
        )
    if done.returncode:
        said = (folder / f"{name}.start").read_text(errors="replace")
        raise Unavailable(f"{name} did not start ({done.returncode}): {said[-500:]}\n{_logs(folder)}")


def _stop(pid_file: Path, seconds: float = 10.0) -> None:
    """End the daemon of a pid file: TERM, then KILL."""
    try:
        pid = int(pid_file.read_text())
    except (OSError, ValueError):
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not _alive(pid):
                return
            time.sleep(0.05)


def _wait_for_node(node: Node) -> None:
    end = time.monotonic() + START_SECONDS
    said = ""
    while time.monotonic() < end:
        try:
            said = node("sinfo", "--noheader", "--format=%T", timeout=15)
        except subprocess.SubprocessError as error:
            said = f"{error} {getattr(error, 'stderr', '')}"
        if said and set(said.split()) == {"idle"}:
            return
        time.sleep(0.2)
    raise Unavailable(f"Slurm's node did not become idle within {START_SECONDS:.0f} s: {said}\n{_logs(node.folder)}")


def _cancel_all(node: Node, seconds: float = 10.0) -> None:
    """End every job at once, while slurmd still lives to do it."""
    for job in node.queue():
        with contextlib.suppress(subprocess.SubprocessError):  # it may have ended meanwhile
            node("scancel", "--full", "--signal=KILL", job["id"])
    end = time.monotonic() + seconds
    while time.monotonic() < end and (held := node.queue()):
        with contextlib.suppress(subprocess.SubprocessError):
            node("scancel", *[job["id"] for job in held])
        time.sleep(0.2)


def _alive(pid: int) -> bool:
    """Whether a process still runs; one that has ended and waits for its parent to notice does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _logs(folder: Path, lines: int = 15) -> str:
    parts = []
    for name in ("munged", "slurmctld", "slurmd"):
        with contextlib.suppress(OSError):
            text = (folder / f"{name}.log").read_text(errors="replace")
            parts.append(f"--- {name}.log\n" + "\n".join(text.splitlines()[-lines:]))
    return "\n".join(parts)


def _fake_gpus(folder: Path, count: int = 2) -> int:
    """Character devices that Slurm counts as GPUs, to test the asking for them; 0 where the machine forbids mknod."""
    try:
        for index in range(count):
            path = folder / f"fakegpu{index}"
            path.unlink(missing_ok=True)
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except OSError:
        return 0
    return count


def _free_ports() -> tuple[int, int]:
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        return first.getsockname()[1], second.getsockname()[1]
