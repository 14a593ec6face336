"""Run files, report folders and stores from somebody else: HDF5 tricks, links, wrong types, and texts that would be markup or code."""

import json

import h5py
import numpy as np
import pytest

from compare import store
from data.errors import InputError
from sampling.run import Run

from .test_arrays import PEAK, peak


def edited(genuine, path, change) -> None:
    """The genuine run's file, changed by `change(h5py.File)`."""
    genuine.save(path)
    with h5py.File(path, "r+") as file:
        change(file)


def swap(file, name, **more):
    del file[name]
    return file.create_dataset(name, **more)


def outside(file):
    del file["series/d2"]
    file["series"].create_dataset("d2", shape=(4, 40), dtype="<f8", external=[("/etc/hostname", 0, 1280)])


def virtual(file):
    del file["series/d2"]
    layout = h5py.VirtualLayout(shape=(4, 40), dtype="<f8")
    layout[:] = h5py.VirtualSource("/etc/hostname", "x", shape=(4, 40))
    file["series"].create_virtual_dataset("d2", layout)


def link(kind):
    def change(file):
        del file["series/d2"]
        file["series/d2"] = kind

    return change


def endless(file):
    file["series/deep"] = h5py.SoftLink("/series")


def many(file):
    for at in range(1100):
        file.create_dataset(f"extra/x{at}", data=np.zeros(1))


TRICKS = {
    "a claim of terabytes": lambda f: swap(f, "series/d2", shape=(4, 10**12), dtype="<f8"),
    "terabytes in pieces": lambda f: swap(f, "series/d2", shape=(4, 10**12), dtype="<f8", chunks=(4, 1024)),
    "zeros packed tight": lambda f: swap(f, "series/d2", data=np.zeros((4, 10**6)), compression="gzip"),
    "data in another file": outside,
    "virtual data": virtual,
    "a link to another file": link(h5py.ExternalLink("/etc/hostname", "/x")),
    "a link by name": link(h5py.SoftLink("/series/Q")),
    "a group that is its own parent": endless,
    "objects": lambda f: f["extra"].create_dataset("o", data=["text"], dtype=h5py.string_dtype()),
    "references": lambda f: f["extra"].create_dataset("r", data=[f["series"].ref], dtype=h5py.ref_dtype),
    "fields": lambda f: f["extra"].create_dataset("c", data=np.zeros(3, dtype=[("a", "<f8"), ("b", "<i4")])),
    "very many arrays": many,
}


@pytest.mark.parametrize("trick", TRICKS)
def test_tricks_of_hdf5_are_refused_before_anything_is_read(trick, genuine, tmp_path):
    path = tmp_path / "one.nc"
    edited(genuine, path, TRICKS[trick])
    before = peak()
    with pytest.raises(InputError, match="not a readable run file") as refused:
        Run.load(path)
    assert "checksum" not in str(refused.value)  # refused for what it is, not because its sums differ afterwards
    assert peak() - before < PEAK


def test_the_genuine_file_is_read(genuine, tmp_path):
    assert Run.load(genuine.save(tmp_path / "one.nc")).checksum() == genuine.checksum()


def bad(run, **changes):
    for name, value in changes.items():
        setattr(run, name, value)


SIGNED = {  # with a checksum that matches: anybody can make one
    "no manifest": lambda run: bad(run, manifest=[]),
    "no problem": lambda run: bad(run, manifest={"problem": 3}),
    "a text for N1": lambda run: run.manifest["problem"].update(N1="__import__('os')"),
    "a list for an activation": lambda run: run.manifest["problem"].update(activation=["erf"]),
    "no log-likelihood": lambda run: run.series.pop("loglik"),
    "a text for a seed": lambda run: run.manifest.update(seed="1; touch x"),
    "texts for acceptances": lambda run: run.manifest.update(acceptance=["a"] * 4),
    "a list for times": lambda run: run.manifest.update(seconds=[1.0]),
    "whole numbers": lambda run: run.series.update(Q=run.series["Q"].astype(np.int64)),
    "three axes": lambda run: run.series.update(Q=run.series["Q"][..., None]),
    "no draws": lambda run: run.series.update({name: x[:, :0] for name, x in run.series.items()}),
    "starts that are markup": lambda run: bad(run, starts=["<script>alert(1)</script>"] * 4),
    "starts that are formulas": lambda run: bad(run, starts=["$\\input{x}$"] * 4),
    "starts that are not texts": lambda run: bad(run, starts=[1, 2, 3, 4]),
    "sums of other chains": lambda run: run.sums.update(ww_stein=run.sums["ww_stein"][:1]),
}


@pytest.mark.parametrize("lie", SIGNED)
def test_a_file_with_a_proper_checksum_is_still_checked(lie, genuine, tmp_path):
    SIGNED[lie](genuine)
    path = genuine.save(tmp_path / "one.nc")
    with pytest.raises(InputError, match="not a readable run file"):
        Run.load(path)


@pytest.mark.parametrize(
    "raw", [b"", b"\x89HDF\r\n\x1a\n", b"CDF\x01" + bytes(100), b"\x89HDF\r\n\x1a\n" + bytes(10_000)]
)
def test_what_is_no_hdf5_is_refused(raw, tmp_path):
    path = tmp_path / "one.nc"
    path.write_bytes(raw)
    with pytest.raises(InputError, match="not a readable run file"):
        Run.load(path)


def test_nothing_is_written_through_a_link_that_lies_in_the_folder(tmp_path):
    victim, folder = tmp_path / "victim", tmp_path / "folder"
    folder.mkdir()
    victim.write_text("mine")
    for name in ("report.json.part", "report.json", "report.part.json"):
        (folder / name).symlink_to(victim)
    store.replace(folder / "report.json", "{}")
    assert victim.read_text() == "mine"
    assert (folder / "report.json").read_text() == "{}"
    assert not (folder / "report.json").is_symlink()
    with store.part_of(folder / "x.csv") as one, store.part_of(folder / "x.csv") as other:
        assert one != other


@pytest.mark.parametrize("name", ["tables", "figures", "runs"])
def test_a_folder_that_is_a_link_is_neither_written_to_nor_cleared(name, tmp_path):
    elsewhere, folder = tmp_path / "pictures", tmp_path / "folder"
    for one in (elsewhere, folder):
        one.mkdir()
    for file in ("holiday.svg", "levels.csv", "one.nc"):
        (elsewhere / file).write_text("mine")
    (folder / name).symlink_to(elsewhere)
    if name == "runs":
        from compare.verify import _begin

        with pytest.raises(InputError, match="delete the link"):
            _begin(folder, {"any": "request"})
    else:
        from compare.result import Report

        with pytest.raises(InputError, match="delete the link"):
            Report([]).write(folder)
    assert sorted(one.name for one in elsewhere.iterdir()) == ["holiday.svg", "levels.csv", "one.nc"]


@pytest.mark.parametrize(
    "text",
    ["[]", "{", '{"margin": "0.1"}', '{"margin": 2}', '{"margin": NaN}', '{"seed": -1}', '{"seed": "rm"}', '{"first_order": "no"}',
     "[" * 100_000, "1" * 5000],
)  # fmt: skip
def test_settings_of_a_report_are_checked(text, tmp_path):
    (tmp_path / store.SETTINGS).write_text(text)
    with pytest.raises(InputError, match="delete it"):
        store.load_settings(tmp_path)


def test_runs_that_do_not_say_what_they_are_of_are_refused(genuine, tmp_path):
    from data.problem import Dataset

    signs = np.array([1.0, -1.0])
    genuine.manifest["problem"].pop("N1")
    with pytest.raises(InputError, match="does not say its N1"):
        store.problem_of(genuine, Dataset(np.eye(2), signs, signs))


HOSTILE = "<script>alert('x')</script>&\"'><img src=x onerror=alert(1)> {{ 7*7 }} $\\frac{1}{$ \x1b]0;title\x07"


def test_texts_of_data_runs_and_errors_are_text_on_the_page(genuine):
    """A whole report whose every text comes from somebody else."""
    from html.parser import HTMLParser

    from compare.cell import Cell
    from compare.result import Report
    from data.problem import Dataset, Problem
    from theory import predict

    rng = np.random.default_rng(0)
    signs = np.repeat([1.0, -1.0], 4)
    about = {HOSTILE: HOSTILE, "classes": {"plus": [HOSTILE]}, "nested": {HOSTILE: {HOSTILE: [HOSTILE]}}}
    problem = Problem(Dataset(rng.normal(size=(8, 3)), signs, signs, name=HOSTILE, provenance=about), N1=3, T=0.5)
    run = genuine
    run.manifest |= {
        "problem": problem.describe(), "sampler": HOSTILE, "device": HOSTILE, "dtype": HOSTILE, "density": HOSTILE, "seed": 1,
        "settings": {HOSTILE: HOSTILE}, "options": {HOSTILE: HOSTILE}, "versions": {HOSTILE: HOSTILE}, "git_commit": HOSTILE,
        "acceptance": [0.8] * 4, "nan_share": 0.0, "seconds": {"warmup": 1.0, "sample": 1.0}, "gradients_per_chain": 10.0,
        "warmup": 1, "draws": 40, "thin": 1, "batch": 1, "resumed": 0, "chains": 4, "biased": False,
    }  # fmt: skip
    report = Report([Cell.of(predict(problem), run)], settings={HOSTILE: HOSTILE})
    page = report.html([HOSTILE])
    assert HOSTILE.split(" ")[0] not in page
    assert "&lt;script&gt;alert(" in page
    assert "49" not in page.split("Data")[0].split("<h1>")[1].split("</h1>")[0]
    found: list[tuple[str, dict]] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attributes):
            found.append((tag, dict(attributes)))

    Tags().feed(page)
    assert sum(tag == "script" for tag, _ in found) == 1
    assert not any(tag == "img" for tag, _ in found)
    assert not any(key.startswith("on") for _, attributes in found for key in attributes)
    json.loads(json.dumps(report.to_dict()))
