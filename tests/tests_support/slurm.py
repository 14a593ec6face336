"""Stand-ins of Slurm's programs that keep a queue in a folder and refuse what real ones refuse; tasks, and what was submitted."""

from pathlib import Path

from sampling.campaign.engines import Task

STAND_IN = """#!{python} -IS
import os, pathlib, re, sys
queue = pathlib.Path({queue!r})
name = pathlib.Path(sys.argv[0]).name
def size(text):
    first, _, last = re.search(r"--array=([0-9-]+)", text).group(1).partition("-")
    return int(last or first) - int(first) + 1
if name == "sbatch":
    text = pathlib.Path(sys.argv[-1]).read_text()
    held = sum(size(one.read_text()) for one in queue.glob("[0-9]*"))
    if (queue / "down").exists():
        sys.exit("sbatch: error: Unable to contact slurm controller (connect failure)")
    if size(text) > {max_array}:
        sys.exit("sbatch: error: Batch job submission failed: Invalid job array specification")
    if held + size(text) > {max_jobs}:
        sys.exit("sbatch: error: QOSMaxSubmitJobPerUserLimit")
    number = 100
    while True:
        try:
            with open(queue / str(number), "x") as out:
                out.write(text)
            break
        except FileExistsError:
            number += 1
    print(f"{{number}};cluster")
elif name == "squeue":
    for one in sorted(queue.glob("[0-9]*")):
        text = one.read_text()
        job = re.search(r"--job-name=(.*)", text).group(1)
        for index in range(size(text)):
            print(f"{{one.name}}|{{index}}|PENDING|Resources|{{job}}")
elif name == "scontrol":
    print("MaxArraySize            = {max_array}")
"""


def cells(count: int, cell_class: str = "cpu", seconds: float = 10.0) -> list[Task]:
    return [Task(f"{cell_class}{index:06x}", cell_class, seconds) for index in range(count)]


def submitted(folder: Path) -> list[str]:
    """Keys in the lists of every submission, in order; a key that stands twice was submitted twice."""
    found: list[str] = []
    for path in sorted((folder / "slurm").glob("*/*.cells")):
        found += path.read_text().split()
    return found
