"""A user's file, a report's data and a checkpoint: pickles, false claims and bombs are refused before memory is asked for."""

import json
import resource
import zipfile
from pathlib import Path

import numpy as np
import pytest

from compare import store
from data import idx, userfile
from data.errors import InputError
from sampling import checkpoint

from .conftest import deflated, npy, npz, plain, zeros

X, Y = np.arange(6.0).reshape(3, 2), np.array([1.0, -1.0, 1.0])
PEAK = 300  # MiB that refusing may take


def user(path: Path) -> object:
    return userfile.read(path)


def report(path: Path) -> object:
    path.rename(path.with_name(store.DATA))
    return store.load_dataset(path.parent)


READERS = [user, report, checkpoint.read]


def peak() -> int:
    """Largest memory of this process so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def hostile(name: str, raw: bytes) -> dict[str, bytes]:
    """Members of an archive that each of the readers would accept but for one."""
    about = json.dumps({"name": "x", "provenance": {}})
    meta = json.dumps({"format": checkpoint.FORMAT}).encode()
    members = {"X": plain(X), "y": plain(Y), "classes": plain(Y), "about": plain(np.array(about))}
    members[checkpoint.META] = plain(np.frombuffer(meta, dtype=np.uint8))
    return members | {name: raw}


@pytest.mark.parametrize("read", READERS)
def test_the_archive_without_the_hostile_member_is_read(read, tmp_path):
    read(npz(tmp_path / "mine.npz", hostile("X", plain(X))))


@pytest.mark.parametrize("read", READERS)
def test_pickles_are_never_read(read, tmp_path, live, trace):
    with pytest.raises(InputError, match="pickle"):
        read(npz(tmp_path / "mine.npz", hostile("X", npy((3, 2), "|O", live))))


@pytest.mark.parametrize("read", READERS)
def test_a_file_that_is_a_pickle_itself_is_never_read(read, tmp_path, live, trace):
    path = tmp_path / "mine.npz"
    path.write_bytes(live)
    with pytest.raises(InputError):
        read(path)


CLAIMS = {
    "more than it holds": npy((10**6, 10**6), payload=bytes(48)),
    "a product beyond 64 bits": npy((2**32, 2**32), payload=bytes(48)),
    "less than it holds": npy((2, 2), payload=bytes(48)),
    "a negative length": npy((-3, 2), payload=bytes(48)),
    "a truth value for a length": npy((True, 6), payload=bytes(48)),
    "a text for a length": npy(("3", 2), payload=bytes(48)),
    "fields": npy((3,), [("a", "<f8"), ("b", "<f8")], bytes(48)),  # type: ignore[arg-type]
    "a later version": npy((3, 2), payload=bytes(48), version=b"\x02\x00"),
    "no array at all": b"GIF89a" + bytes(60),
    "code for a header": b"\x93NUMPY\x01\x00"
    + (40).to_bytes(2, "little")
    + b"__import__('os').system('touch /tmp/x') " * 1,
    "nothing": b"",
}


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("claim", CLAIMS)
def test_false_claims_are_refused_before_memory_is_asked_for(read, claim, tmp_path):
    before = peak()
    with pytest.raises(InputError) as refused:
        read(npz(tmp_path / "mine.npz", hostile("X", CLAIMS[claim])))
    assert "\n" not in str(refused.value)
    assert peak() - before < PEAK


@pytest.mark.parametrize("read", READERS)
def test_a_small_file_that_unpacks_to_a_gigabyte_is_refused_packed(read, tmp_path):
    path = deflated(tmp_path / "mine.npz", "X", *zeros((1 << 14, 1 << 13)))
    assert path.stat().st_size < 2 << 20
    before = peak()
    with pytest.raises(InputError, match="claims 1024 MiB"):
        read(path)
    assert peak() - before < PEAK


def test_a_length_that_lies_about_what_is_packed_is_found_out(tmp_path):
    packed, crc, _ = zeros((1 << 10, 1 << 10))
    path = deflated(tmp_path / "mine.npz", "X", packed, crc, 128)
    with pytest.raises(InputError):
        userfile.read(path)


def test_genuine_compression_is_read(tmp_path):
    big = np.zeros((4000, 1000))
    big[:, 0] = np.arange(4000)
    y = np.where(np.arange(4000) % 2, 1.0, -1.0)
    np.savez_compressed(tmp_path / "mine.npz", X=big, y=y)
    assert np.array_equal(userfile.read(tmp_path / "mine.npz").pool.X, big)


def test_more_than_is_ever_read_in_all_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("data.arrays.LARGEST", 100)
    with pytest.raises(InputError, match="GiB"):
        userfile.read(npz(tmp_path / "mine.npz", hostile("X", plain(X))))


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(compression, tmp_path):
    with pytest.raises(InputError, match="compressed"):
        userfile.read(npz(tmp_path / "mine.npz", hostile("X", plain(X)), compression))


def test_members_named_as_paths_write_nothing(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    members = hostile("X", plain(X)) | {"../../out": plain(X), "/tmp/out-of-saddlecheck": plain(X)}
    checkpoint.read(npz(inner / "mine.npz", members))
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["a", "b", "mine.npz"]


def test_a_checkpoint_whose_settings_are_no_table_is_refused(tmp_path):
    path = npz(tmp_path / "one.checkpoint", {checkpoint.META: plain(np.frombuffer(b"[1]", dtype=np.uint8))})
    with pytest.raises(InputError, match="delete it"):
        checkpoint.read(path)


def test_what_the_report_s_data_say_of_themselves_is_checked(tmp_path):
    for about in ("[]", '{"name": "x"}', '{"name": "x", "provenance": 3}', "{" * 100_000):
        npz(tmp_path / store.DATA, hostile("about", plain(np.array(about))))
        with pytest.raises(InputError, match="cannot be read"):
            store.load_dataset(tmp_path)


def image(*sizes: int) -> bytes:
    return b"\x00\x00\x08" + bytes([len(sizes)]) + b"".join(one.to_bytes(4, "big") for one in sizes)


@pytest.mark.parametrize("sizes", [(60000, 28, 28), (2**32 - 1,) * 4, (2**31, 2**31, 4), (0, 2**32 - 1, 2**32 - 1)])
def test_images_that_claim_more_than_there_is_are_refused(sizes):
    before = peak()
    with pytest.raises(InputError, match="its header asks for"):
        idx.parse(image(*sizes), "images")
    assert peak() - before < PEAK


def test_a_gzip_that_unpacks_without_end_is_read_to_a_bound(tmp_path):
    import gzip

    path = tmp_path / "train-images-idx3-ubyte.gz"
    with gzip.open(path, "wb", compresslevel=9) as out:
        for _ in range(192):
            out.write(bytes(1 << 20))
    assert path.stat().st_size < 1 << 20
    before = peak()
    with pytest.raises(InputError, match="more than 64 MiB"):
        idx.payload(path)
    assert peak() - before < PEAK
