"""What the code itself may never do with a file: unpickle, evaluate, extract; and archives, specs and catalogues that try to leave."""

import ast
import contextlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from data import cifar
from data.errors import InputError
from sampling.campaign import catalog, engines
from sampling.campaign.cell import Cell, inside
from sampling.campaign.precision import options
from sampling.campaign.source import parse_toml, parse_yaml
from sampling.campaign.store import RESULT, Store

ROOT = Path(__file__).parents[2]
PACKAGES = ("data", "theory", "sampling", "compare")
NEVER = {"eval", "exec", "compile", "__import__"}
FORBIDDEN = {
    ("np", "load"), ("numpy", "load"), ("torch", "load"), ("pickle", "load"), ("pickle", "loads"), ("pandas", "read_pickle"),
    ("pd", "read_pickle"), ("joblib", "load"), ("yaml", "load"), ("yaml", "unsafe_load"), ("yaml", "full_load"), ("os", "system"),
    ("marshal", "loads"), ("shelve", "open"), ("np", "fromfile"), ("tempfile", "mktemp"),
}  # fmt: skip
METHODS = {"extractall", "extract", "eval", "read_pickle", "from_string"}
MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
# The one reader of pickles is an unpickler that can name nothing; tests/data/test_cifar.py attacks it.
ALLOWED = {("data/cifar.py", "pickle")}


def findings(source: str, path: str = "x.py") -> list[str]:
    """Calls and imports in a source text by which a file's content could become code or leave its place."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            found += [
                f"{path}: import {name}"
                for name in names
                if name.split(".")[0] in MODULES and (path, name) not in ALLOWED
            ]
        if not isinstance(node, ast.Call):
            continue
        if any(one.arg == "shell" and getattr(one.value, "value", True) for one in node.keywords):
            found.append(f"{path}: shell=True")
        if any(one.arg == "allow_pickle" and getattr(one.value, "value", True) for one in node.keywords):
            found.append(f"{path}: allow_pickle")
        if isinstance(node.func, ast.Name) and node.func.id in NEVER:
            found.append(f"{path}: {node.func.id}")
        if isinstance(node.func, ast.Attribute):
            owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
            if (owner, node.func.attr) in FORBIDDEN or (node.func.attr in METHODS and owner != "re"):
                found.append(f"{path}: {owner}.{node.func.attr}")
    return found


def test_no_source_unpickles_evaluates_or_extracts():
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert len(paths) > 100
    found = []
    for path in paths:
        found += findings(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))
    assert found == []


@pytest.mark.parametrize(
    "source",
    ["eval(text)", "import pickle", "from pickle import loads", "np.load(path)", "torch.load(path, weights_only=False)",
     "archive.extractall(place)", "subprocess.run(text, shell=True)", "np.lib.format.read_array(f, allow_pickle=True)",
     "yaml.load(text)", "frame.eval(text)"],
)  # fmt: skip
def test_the_search_finds_what_it_looks_for(source):
    assert findings(source)


@pytest.mark.parametrize("name", ["../../out", "/tmp/out-of-saddlecheck", "link"])
def test_members_of_an_archive_are_read_in_memory_and_none_is_put_on_disk(name, tmp_path, monkeypatch):
    import hashlib

    path = tmp_path / "a" / "cifar-10-python.tar.gz"
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as archive:
        for member in [name, *[f"{cifar.FOLDER}/{batch}" for batch in cifar.BATCHES["train"]]]:
            info = tarfile.TarInfo(member)
            if member == f"{cifar.FOLDER}/data_batch_1" and name == "link":
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
                archive.addfile(info)
            else:
                info.size = 4
                archive.addfile(info, io.BytesIO(b"evil"))
    monkeypatch.chdir(path.parent)
    with pytest.raises(InputError, match="corrupt"):
        cifar.read_archive(path, hashlib.sha256(path.read_bytes()).hexdigest(), "train")
    assert [one.name for one in tmp_path.rglob("*")] == ["a", path.name]


@pytest.mark.parametrize("name", ["..", "../x.npz", "a/../../x.npz", "/etc/passwd", ".", "link/x.npz"])
def test_a_cell_s_file_lies_in_its_campaign(name, tmp_path):
    folder = tmp_path / "campaign"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(InputError, match="leaves the output directory"):
        inside(folder, name)


@pytest.mark.parametrize(
    "name", ["../../../etc/passwd", "a" * 31, "g" * 32, "A" * 32, "a" * 32 + "\n", "/" + "a" * 31, ""]
)
def test_an_id_that_is_a_path_is_refused(name, tmp_path):
    for read in (Store(tmp_path).place, Store(tmp_path).read, lambda one: catalog.find(tmp_path, [one])):
        with pytest.raises(InputError, match="32 hexadecimal digits"):
            read(name)


@pytest.mark.parametrize("name", ["save", "checkpoint", "device", "progress", "problem", "options"])
@pytest.mark.parametrize("sampler", ["hmc", "nuts"])
def test_an_option_that_would_write_elsewhere_is_refused(name, sampler, tmp_path):
    cell = Cell({"options": {name: str(tmp_path / "out")}, "sampler": sampler})
    with pytest.raises(InputError, match="is not an option"):
        options(cell)


@pytest.mark.parametrize("value", ["os:system", "../evil", "sampling.run", "__main__", "local:1;touch x"])
def test_an_engine_is_one_of_ours(value):
    with pytest.raises(InputError):
        engines.get(value)


@pytest.mark.parametrize("text", ["x = " + "1" * 5000, "[" * 50_000, "x = " + "[" * 50_000, "a." * 20_000 + "a = 1"])
def test_toml_that_breaks_parsers_is_refused_or_read_but_never_crashes(text):
    with contextlib.suppress(InputError):
        parse_toml(text)


@pytest.mark.parametrize(
    "text",
    ["!!python/object/apply:os.system ['touch x']", "a: !!python/name:os.system x", "a: &x [1]\nb: *x",
     "a: !!binary aGVsbG8=", "? [a]\n: b", "<<: {a: 1}"],
)  # fmt: skip
def test_yaml_that_constructs_or_refers_is_refused(text):
    with pytest.raises(InputError):
        parse_yaml(text)


@pytest.mark.parametrize("kind", ["link", "pipe", "huge", "deep", "number", "nan"])
def test_a_summary_that_is_no_ordinary_small_json_makes_the_cell_damaged(kind, tmp_path):
    import os

    store, name = Store(tmp_path), "0" * 32
    place = store.place(name)
    place.mkdir(parents=True)
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"body": {}, "sha256": ""}))
    path = place / RESULT
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_text(
            {"huge": " " * (2 << 20), "deep": "[" * 100_000, "number": "1" * 6000, "nan": '{"body": NaN}'}[kind]
        )
    assert store.read(name).state == "damaged"
