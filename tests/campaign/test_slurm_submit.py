"""Submitting to Slurm without a Slurm: hostile words, the edited script, limits of arrays and queues, two shells at once.

`sbatch`, `squeue` and `scontrol` are stand-ins that keep a queue in a folder and refuse what a real one refuses; the real Slurm is in
test_slurm.py.
"""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests_support.slurm import cells, submitted

from data.errors import InputError
from sampling.campaign import slurm_queue, slurm_script, slurm_submit
from sampling.campaign.engines import Task
from sampling.campaign.slurm_settings import SlurmSettings
from sampling.campaign.slurm_submit import submit_missing

HOSTILE = [
    'partition = "low\\n#SBATCH --wrap=id"',
    'partition = "low; rm -rf ~"',
    'account = "$(id)"',
    'account = "`id`"',
    'qos = "-x"',
    'constraint = "a b"',
    'gpu_type = "a100 --uid=0"',
    'memory = "4G --wrap"',
    'memory = "-1"',
    'time = "01:00:00 --uid=0"',
    'time = "01:00"',
    'time = "00:00:10"',
    'time = "00:01:00"\ngrace_seconds = 60',
    'class."x/../y".partition = "low"',
    'class."a\\nb".partition = "low"',
    'class.gpu.time = "00:02:00"',
    "cpus = 0",
    "gpus = -1",
    "max_queued = 0",
    'wrap = "id"',
    'partition = "low\\u2028x"',
    'partition = "low\\n"',
]


@pytest.mark.parametrize("text", HOSTILE)
def test_words_that_could_leave_their_place_are_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        SlurmSettings.model_validate(tomllib.loads(text))


def test_resources_of_a_class_lie_over_those_of_all() -> None:
    spec = """
    partition = "main,long"
    account = "phys-42"
    time = "1-00:00:00"
    memory = "4G"
    [class.gpu]
    partition = "gpu"
    gpus = 2
    gpu_type = "a100"
    """
    settings = SlurmSettings.model_validate(tomllib.loads(spec))
    assert settings.resources("cpu").directives() == [
        "#SBATCH --partition=main,long",
        "#SBATCH --account=phys-42",
        "#SBATCH --time=1-00:00:00",
        "#SBATCH --mem=4G",
    ]
    assert settings.resources("gpu").directives() == [
        "#SBATCH --partition=gpu",
        "#SBATCH --account=phys-42",
        "#SBATCH --time=1-00:00:00",
        "#SBATCH --mem=4G",
        "#SBATCH --gres=gpu:a100:2",
    ]


def test_an_edited_script_is_kept_and_used(stand_in, tmp_path: Path) -> None:
    queue = stand_in()
    folder = tmp_path / "campaign"
    folder.mkdir()
    text = slurm_script.template(folder)
    assert text == slurm_script.TEMPLATE
    edited = text.replace("# module load python ", "module load python/3.12 ")
    assert edited != text
    (folder / "slurm.sh").write_text(edited)
    submit_missing(folder, lambda: cells(2), SlurmSettings())
    assert "\nmodule load python/3.12 " in (queue / "100").read_text()
    assert (folder / "slurm.sh").read_text() == edited
    assert (folder / "slurm/0001/cpu-0.sh").read_text() == (queue / "100").read_text()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("{{ worker }}", "true"), "must contain"),
        (lambda text: text.replace("{{ array }}", "0-3"), "must contain"),
        (lambda text: text + "\n{{ wroker }}\n", "unknown word"),
        (lambda text: text.removeprefix("#!/bin/bash\n"), "first line"),
    ],
)
def test_a_script_edited_beyond_use_is_refused_before_anything_is_submitted(change, said, stand_in, tmp_path) -> None:
    queue = stand_in()
    folder = tmp_path / "campaign"
    folder.mkdir()
    (folder / "slurm.sh").write_text(change(slurm_script.TEMPLATE))
    with pytest.raises(InputError, match=said):
        submit_missing(folder, lambda: cells(2), SlurmSettings())
    assert not list(queue.iterdir())


def test_the_script_is_bash_and_its_paths_are_words(stand_in, tmp_path: Path) -> None:
    queue = stand_in()
    folder = tmp_path / 'it\'s a "folder" $(touch owned) %j; é'
    folder.mkdir()
    submit_missing(folder, lambda: cells(1), SlurmSettings(gpus=1))
    text = (queue / "100").read_text()
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    assert "owned" not in text
    assert "{{" not in text
    words = ["/a b/python", "x'y", "$(id)", ";", "é"]
    said = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {slurm_script.command(words)}"], capture_output=True, text=True, check=True
    ).stdout
    assert said.splitlines() == words
    with pytest.raises(InputError, match="line break"):
        slurm_script.command(["a\nb"])


def test_arrays_stay_within_what_the_site_takes(stand_in, tmp_path: Path) -> None:
    stand_in(max_array=7)
    work = cells(20) + cells(3, "gpu")
    done = submit_missing(tmp_path / "c", lambda: work, SlurmSettings(cells_per_job=1))
    assert done.cells == 23
    assert len(done.jobs) == 4  # 7 + 7 + 6 elements and 3 of the other class
    assert sorted(submitted(tmp_path / "c")) == sorted(one.id for one in work)


def test_an_element_holds_as_much_work_as_asked() -> None:
    parts = slurm_submit.portions(cells(10, seconds=10.0), SlurmSettings(job_seconds=35.0))["cpu"]
    assert [len(part) for part in parts] == [3, 3, 3, 1]
    long = slurm_submit.portions(cells(3, seconds=100.0), SlurmSettings(job_seconds=35.0))["cpu"]
    assert [len(part) for part in long] == [1, 1, 1]
    counted = slurm_submit.portions(cells(10, seconds=100.0), SlurmSettings(cells_per_job=4))["cpu"]
    assert [len(part) for part in counted] == [4, 4, 2]


def test_what_is_in_the_queue_is_not_submitted_again(stand_in, tmp_path: Path) -> None:
    queue = stand_in()
    folder = tmp_path / "c"
    work = cells(6)
    first = submit_missing(folder, lambda: work, SlurmSettings(cells_per_job=2))
    assert (first.cells, first.queued) == (6, 0)
    again = submit_missing(folder, lambda: work, SlurmSettings(cells_per_job=2))
    assert (again.jobs, again.cells, again.queued) == ((), 0, 6)
    # A site that cancels instead of requeueing: the jobs are gone, and running again submits just what is missing.
    (queue / "100").unlink()
    third = submit_missing(folder, lambda: work[:1] + work[4:], SlurmSettings())
    assert third.cells == 3
    assert (folder / "slurm/0002/cpu-0.cells").read_text().split() == [one.id for one in work[:1] + work[4:]]


def test_other_campaigns_and_foreign_jobs_do_not_count(stand_in, tmp_path: Path) -> None:
    queue = stand_in()
    submit_missing(tmp_path / "other", lambda: cells(4), SlurmSettings())
    (queue / "7").write_text("#SBATCH --job-name=sc-x-../../etc\n#SBATCH --array=0-3\n")
    prefix = f"sc-{slurm_submit.identity(tmp_path / 'mine')}-"
    (queue / "8").write_text(f"#SBATCH --job-name={prefix}../../../etc-0\n#SBATCH --array=0-3\n")
    (queue / "9").write_text(f"#SBATCH --job-name={prefix}0001-cpu-99\n#SBATCH --array=0-3\n")
    assert submit_missing(tmp_path / "mine", lambda: cells(4), SlurmSettings()).cells == 4


def test_a_full_queue_takes_what_fits_and_the_rest_later(stand_in, tmp_path: Path) -> None:
    queue = stand_in(max_jobs=5)
    folder = tmp_path / "c"
    work = cells(12)
    settings = SlurmSettings(cells_per_job=1)
    first = submit_missing(folder, lambda: work, settings)
    assert (first.cells, first.later) == (5, 7)
    assert "QOSMaxSubmitJobPerUserLimit" in first.note
    for job in queue.iterdir():
        job.unlink()
    done = set(submitted(folder))
    second = submit_missing(folder, lambda: [one for one in work if one.id not in done], settings)
    assert (second.cells, second.later) == (5, 2)
    assert len(submitted(folder)) == len(set(submitted(folder))) == 10


def test_the_campaign_s_own_bound_of_the_queue(stand_in, tmp_path: Path) -> None:
    stand_in()
    settings = SlurmSettings(cells_per_job=1, max_queued=5, at_once=2)
    first = submit_missing(tmp_path, lambda: cells(12), settings)
    assert (first.cells, first.later) == (5, 7)
    assert "#SBATCH --array=0-4%2" in (tmp_path / "slurm/0001/cpu-0.sh").read_text()
    second = submit_missing(tmp_path, lambda: cells(12), settings)
    assert (second.cells, second.queued, second.later) == (0, 5, 7)


def test_a_refusal_is_an_error_with_slurm_s_words_and_nothing_is_lost(stand_in, tmp_path: Path) -> None:
    queue = stand_in()
    (queue / "down").touch()
    with pytest.raises(slurm_queue.SlurmError, match="Unable to contact slurm controller"):
        submit_missing(tmp_path / "c", lambda: cells(3), SlurmSettings())
    (queue / "down").unlink()
    assert submit_missing(tmp_path / "c", lambda: cells(3), SlurmSettings()).cells == 3


def test_without_slurm_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="login node"):
        submit_missing(tmp_path / "c", lambda: cells(3), SlurmSettings())


def _shell(folder: Path, barrier, count: int, answers) -> None:
    barrier.wait()
    done = submit_missing(folder, lambda: cells(count), SlurmSettings(cells_per_job=3))
    answers.put(done.cells)


def test_four_shells_at_once_submit_each_cell_once(stand_in, tmp_path: Path) -> None:
    stand_in(max_array=5)
    folder = tmp_path / "c"
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(4), context.Queue()
    shells = [context.Process(target=_shell, args=(folder, barrier, 40, answers)) for _ in range(4)]
    for shell in shells:
        shell.start()
    found = sorted(answers.get(timeout=60) for _ in shells)
    for shell in shells:
        shell.join(30)
    assert found == [0, 0, 0, 40]
    assert sorted(submitted(folder)) == sorted(one.id for one in cells(40))


def test_a_submission_that_was_broken_off_does_not_hold_the_next(stand_in, tmp_path: Path, monkeypatch) -> None:
    stand_in()
    monkeypatch.setattr(slurm_submit, "BROKEN_OFF", 0.5)
    folder = tmp_path / "c"
    work = cells(4)
    assert submit_missing(folder, lambda: work[:2], SlurmSettings()).cells == 2
    # Killed after sbatch and before its record: the queue knows what it submitted, by the job's name.
    (folder / "slurm/0001/jobs.json").unlink()
    again = submit_missing(folder, lambda: work, SlurmSettings())
    assert (again.cells, again.queued) == (2, 2)
    assert sorted(submitted(folder)) == sorted(one.id for one in work)
    assert json.loads((folder / "slurm/0001/jobs.json").read_text())["note"] == "broken off"


@pytest.mark.parametrize("key", ["../x", "a b", "a\nb", "", "a;b"])
def test_keys_that_are_no_keys_are_refused(key: str, stand_in, tmp_path: Path) -> None:
    queue = stand_in()
    with pytest.raises(InputError, match="not the id"):
        submit_missing(tmp_path / "c", lambda: [Task(key, "cpu", 1.0)], SlurmSettings())
    assert not list(queue.iterdir())


def test_pending_arrays_that_squeue_does_not_expand() -> None:
    assert slurm_queue._indices("0-3,7%2") == [0, 1, 2, 3, 7]
    assert slurm_queue._indices("5") == [5]
    assert slurm_queue._indices("N/A") == []
