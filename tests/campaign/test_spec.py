"""Specs: every error by key and line, YAML's traps, hostile content, the grid and the names of its cells."""

from __future__ import annotations

import json
import random
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import InputError
from sampling.campaign import check, source
from sampling.campaign.cell import Cell, identify
from sampling.campaign.source import parse_toml, parse_yaml, toml_lines
from sampling.campaign.spec import SAMPLERS, SpecError, cells, load, validate
from sampling.settings import samplers

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "docs" / "campaigns").glob("*.toml"))

GOOD = """\
title = "a grid"
[grid]
data = "digits"
P = [20, 40]
alpha = [0.5, 2]
T = { low = 0.01, high = 1, points = 3 }
labels = ["true", "random"]
subset_seed = [0, 1]
[precision]
target = 0.1
"""


def errors_of(text: str, kind=parse_toml) -> list[tuple[int | None, str, str]]:
    with pytest.raises(SpecError) as caught:
        validate(kind(text))
    return caught.value.errors


def test_grid_is_the_product_and_alpha_sets_the_width():
    found = list(cells(validate(parse_toml(GOOD))))
    assert len(found) == 2 * 2 * 3 * 2 * 2
    assert {(one["P"], one["N1"]) for one in found} == {(20, 40), (20, 10), (40, 80), (40, 20)}
    assert [one["T"] for one in found[:3]] == [0.01, 0.1, 1.0]
    assert len({one.id for one in found}) == len(found)


def test_several_blocks_share_equal_cells():
    block = '[[grid]]\ndata = "digits"\nP = 20\nN1 = [10, 20]\nT = [1, 2.0]\n'
    other = '[[grid]]\nclass = "big"\ndata = "Digits"\nP = 20\nalpha = 1\nT = [1.0, 3]\n'
    found = list(cells(validate(parse_toml(block + other))))
    assert [(one["N1"], one["T"], one.cell_class) for one in found] == [
        (10, 1.0, "default"),
        (10, 2.0, "default"),
        (20, 1.0, "default"),
        (20, 2.0, "default"),
        (20, 3.0, "big"),
    ]


def test_every_error_is_named_with_key_and_line():
    text = """\
titel = "x"
[grid]
data = "digit"
P = [20, 0]
N1 = 3
alpha = 1
T = [
  0.1,
  -1,
]
labels = "fake"
[sampling]
chains = true
[precision]
target = "small"
budget = 3
"""
    found = {(line, key): what for line, key, what in errors_of(text)}
    assert set(found) == {
        (1, "titel"), (3, "grid.data"), (4, "grid.P.1"), (7, "grid.T.1"), (11, "grid.labels"), (13, "sampling.chains"),
        (15, "precision.target"), (16, "precision.budget"),
    }  # fmt: skip
    assert "did you mean 'title'" in found[1, "titel"]
    assert "did you mean 'digits'" in found[3, "grid.data"]
    assert "did you mean 'budget_seconds'" in found[16, "precision.budget"]
    # What holds between keys is looked at once each key is right.
    ((line, key, what),) = errors_of('[grid]\ndata="digits"\nP=9\nN1=3\nalpha=1\nT=1\n')
    assert (line, key) == (1, "grid")
    assert "either N1 or alpha" in what


@pytest.mark.parametrize(
    ("line", "key", "what"),
    [
        ("T = []", "grid.T", "empty"),
        ("T = nan", "grid.T", "finite"),
        ("T = inf", "grid.T", "finite"),
        ("T = { low = 1, high = 0.1, points = 3 }", "grid.T", "low < high"),
        ("T = { low = 0.1, high = 1, points = 1 }", "grid.T", "between 2"),
        ("T = { low = 0.1, high = 1 }", "grid.T", "range is"),
        ("T = true", "grid.T", "valid number"),
        ('T = "1"', "grid.T", "valid number"),
    ],
)
def test_ladders_of_temperature_that_make_no_sense(line: str, key: str, what: str):
    ((number, name, text),) = errors_of(f'[grid]\ndata = "digits"\nP = 9\nN1 = 3\n{line}\n')
    assert number == 5
    assert name.startswith(key)
    assert what in text


def test_the_number_of_cells_is_bounded():
    seeds = ",".join(map(str, range(2000)))
    ((_, _, what),) = errors_of(
        f'[grid]\ndata="digits"\nP=9\nN1=3\nT={{low=0.1,high=1,points=1000}}\nsubset_seed=[{seeds}]\n'
    )
    assert "2000000 cells" in what


def test_yaml_is_read_as_it_looks():
    """The four traps of YAML 1.1: an exponent without a dot, off and no, 1:30, a leading zero; control: the usual reader falls in."""
    import yaml

    text = "a: 1e-3\nb: off\nc: no\nd: 1:30\ne: 010\nf: true\ng: '5'\nh: ~\ni: [.5, -2, 1_000]\nj: 2001-01-01\n"
    values = parse_yaml(text).values
    assert values == {
        "a": 0.001, "b": "off", "c": "no", "d": "1:30", "e": 10, "f": True, "g": "5", "h": None,
        "i": [0.5, -2, "1_000"], "j": "2001-01-01",
    }  # fmt: skip
    usual = yaml.safe_load(text)
    assert [usual[key] for key in "abcde"] == ["1e-3", False, False, 90, 8]


def test_yaml_and_toml_give_the_same_cells():
    text = json.dumps(tomllib.loads(GOOD))  # JSON is YAML
    assert [one.id for one in cells(validate(parse_yaml(text)))] == [
        one.id for one in cells(validate(parse_toml(GOOD)))
    ]


def test_yaml_errors_have_lines():
    assert errors_of("grid:\n  data: digits\n  P: 20\n  N1: 8\n  T:\n    - 1\n    - x\n", parse_yaml)[0][:2] == (
        7,
        "grid.T.1",
    )


@pytest.mark.parametrize(
    "text",
    [
        "a: !!python/object/apply:os.system ['touch /tmp/x']",
        "a: !!python/name:os.system",
        "!!map {a: 1}",
        "a: !custom 1",
        "a: &x [1]\nb: *x",
        "a: &x {b: 1}\nc:\n  <<: *x",
        "a: 1\na: 2",
        "a: 1\n---\nb: 2",
        "- 1",
        "a: [1",
        "? [a]\n: 1",
        "[" * 5000,
    ],
)
def test_yaml_that_is_more_than_plain_values_is_refused(text: str):
    with pytest.raises(InputError):
        parse_yaml(text)


def test_a_spec_of_another_kind_or_size_is_refused(tmp_path: Path):
    for name, content, what in [
        ("a.json", b"{}", "toml"),
        ("a.toml", b"x" * (source.LARGEST + 1), "larger"),
        ("b.toml", b"\xff", "UTF-8"),
        ("c.toml", b"a = ]", "line 1"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=what):
            load(tmp_path / name)
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "none.toml")


@pytest.mark.parametrize("name", ["../secret.npz", "/etc/secret.npz", "a/../../secret.npz"])
def test_a_data_path_cannot_leave_the_output_directory(name: str, tmp_path: Path):
    assert "leaves the output directory" in errors_of(f'[grid]\ndata = "{name}"\nN1 = 3\nT = 1\n')[0][2]


def test_a_link_out_of_the_output_directory_is_refused(tmp_path: Path):
    inside, outside = tmp_path / "out", tmp_path / "secret.npz"
    inside.mkdir()
    X = np.eye(4)
    np.savez(outside, X=X, y=[1, 1, -1, -1])
    (inside / "link.npz").symlink_to(outside)
    (inside / "good.npz").write_bytes(outside.read_bytes())
    text = '[grid]\ndata = "{}"\nN1 = 3\nT = 1\n'
    check.check(validate(parse_toml(text.format("good.npz"))), inside)
    with pytest.raises(InputError, match="leaves the output directory"):
        next(cells(validate(parse_toml(text.format("link.npz"))), inside))


def test_a_pickled_data_file_is_refused(tmp_path: Path):
    marker = tmp_path / "executed"

    class Evil:
        def __reduce__(self):
            return (open, (str(marker), "w"))

    np.savez(tmp_path / "evil.npz", X=np.array([Evil()], dtype=object), y=np.ones(1))
    spec = validate(parse_toml('[grid]\ndata = "evil.npz"\nN1 = 3\nT = 1\n'))
    with pytest.raises(SpecError, match="damaged or not an"):
        check.check(spec, tmp_path)
    assert not marker.exists()


def test_a_data_file_is_known_by_its_content(tmp_path: Path):
    X = np.random.default_rng(0).normal(size=(6, 3))
    for folder, name in [("a", "one.npz"), ("b", "one.npz")]:
        (tmp_path / folder).mkdir()
        np.savez(tmp_path / folder / name, X=X + (folder == "b"), y=[1, 1, 1, -1, -1, -1])
    spec = validate(parse_toml('[grid]\ndata = "one.npz"\nN1 = 3\nT = 1\n'))
    one, other = (next(cells(spec, tmp_path / folder)) for folder in "ab")
    assert one.id != other.id
    assert one.problem(one.dataset(tmp_path / "a")).P == 6
    with pytest.raises(InputError, match="has changed"):
        one.dataset(tmp_path / "b")


def test_a_cell_that_names_a_file_without_its_checksum_is_refused(tmp_path: Path):
    cell = next(cells(validate(parse_toml(GOOD))))
    for name in ("/etc/passwd.npz", "a.npz", "x/y"):
        with pytest.raises(InputError, match="checksum"):
            Cell(cell.identity | {"data": name}).dataset(tmp_path)


def test_data_and_options_are_tried_before_anything_runs(tmp_path: Path):
    path = tmp_path / "spec.toml"
    path.write_text(
        '[grid]\ndata = "digits"\nclasses = "0/1"\nP = 5000\nN1 = 3\nT = 1\n[sampling.options.hmc]\nspeed = 3\n'
    )
    with pytest.raises(SpecError) as caught:
        check.load(path, tmp_path)
    assert [(line, key) for line, key, _ in caught.value.errors] == [(2, "grid.data"), (7, "sampling.options.hmc")]


def test_the_identity_does_not_depend_on_the_spec_around_it():
    """Another order, other cells beside it, another target, budget or class: the same cell. Anything that decides numbers: another."""
    base = {one.id for one in cells(validate(parse_toml(GOOD)))}
    same = (
        GOOD.replace("[20, 40]", "[40, 20, 60]")
        .replace('title = "a grid"', "")
        .replace("target = 0.1", "target = 0.2\nfinest = 0.01")
    )
    assert base < {one.id for one in cells(validate(parse_toml(same)))}
    for more in (
        "[sampling]\nchains = 4",
        "[sampling]\nwarmup = 3",
        '[sampling]\ndtype = "float32"',
        "[sampling.options.hmc]\npath = 1.0",
    ):
        assert not base & {one.id for one in cells(validate(parse_toml(GOOD + more)))}


def test_an_id_is_fixed_for_all_time():
    """A store outlives the process that made it: the hash must not move with Python's own, with dict order, or with a version."""
    assert identify({"b": 1.0, "a": [1e-3, None, "x"]}) == "0ed15d7312ccfc15b950101da37edb72"
    first = next(cells(validate(parse_toml(GOOD))))
    assert first.id == "6b580b6481054ac15244e758dd4cbfed"


def test_chains_of_different_cells_have_different_seeds():
    found = list(cells(validate(parse_toml(GOOD))))
    assert len({one.chain_seed() for one in found}) == len(found)


def test_a_line_of_the_catalogue_survives_and_a_changed_one_is_refused():
    cell = next(cells(validate(parse_toml(GOOD))))
    line = cell.line()
    again = Cell.of_line(line)
    assert (again.id, again.identity, again.effort) == (cell.id, cell.identity, cell.effort)
    for wrong in (
        line.replace('"N1":40', '"N1":41'),
        line[:50],
        "x " + line,
        line.replace('"P":20,', ""),
        f"{cell.id} [1,2]",
    ):
        with pytest.raises(InputError):
            Cell.of_line(wrong)


@given(st.integers(0, 10**6))
def test_lines_of_keys_are_found_wherever_they_stand(seed: int):
    """Keys at known lines among comments, blank lines, lists over several lines and long texts."""
    rng = random.Random(seed)
    lines: list[str] = []
    expected: dict[tuple[str | int, ...], int] = {}
    prefix: tuple[str | int, ...] = ()
    tables = 0
    for at in range(12):
        kind = rng.randrange(6)
        name = f"k{at}"
        if kind == 0:
            prefix = (f"t{tables}",)
            tables += 1
            lines.append(f"[{prefix[0]}]  # a = 1")
            expected[prefix] = len(lines)
        elif kind == 1:
            lines += [f"{name} = [", "  1, # ]", f'  "x{name} = 2]",', "]"]
            expected[(*prefix, name)] = len(lines) - 3
        elif kind == 2:
            lines += [f'{name} = """', "k99 = 1", "[t99]", '"""']
            expected[(*prefix, name)] = len(lines) - 3
        elif kind == 3:
            lines.append(f'{name} . "b" = {{ c = 1, d = "[" }}')
            expected[(*prefix, name, "b")] = len(lines)
        elif kind == 4:
            lines += ["", "# k98 = 1"]
        else:
            lines.append(f"{name} = 'a # [b' # {{")
            expected[(*prefix, name)] = len(lines)
    text = "\n".join(lines)
    tomllib.loads(text)
    assert toml_lines(text) == expected


def test_samplers_are_those_of_the_package():
    assert set(SAMPLERS) == set(samplers())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_valid(path: Path, tmp_path: Path):
    spec = load(path)
    assert spec.title
    found = list(cells(spec, tmp_path))
    assert 10 <= len(found) <= 1000
    assert f"{len(found)} cells" in path.read_text(encoding="utf-8").splitlines()[0]


def test_there_are_examples():
    assert len(EXAMPLES) >= 3


def test_every_key_is_described():
    """docs/campaigns.md names every key that a spec may have, and every state that a cell may be in."""
    from sampling.campaign.spec import Grid, Precision, Sampling, Work
    from sampling.campaign.store import STATES

    text = (ROOT / "docs" / "campaigns.md").read_text(encoding="utf-8")
    for model in (Grid, Sampling, Precision, Work):
        for name, field in model.model_fields.items():
            key = field.alias or name
            assert f"`{key}`" in text or f"[{model.__name__.lower()}.{key}." in text, key
    for state in STATES:
        assert state in text
