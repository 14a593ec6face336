"""Data by name: `load`, and the list of what there is. Image sets, synthetic sets and a user's own `.npz` by one call."""

from __future__ import annotations

import difflib
import inspect
import os
from pathlib import Path
from typing import Any

import numpy as np

from data import userfile
from data.errors import InputError
from data.generators import SYNTHETIC, generate, parameters
from data.images import SETS, ImageSet
from data.labels import check_labels, relabel
from data.local import Images
from data.partition import Partition, parse
from data.problem import Dataset
from data.scaling import Scaling, kind_of
from data.seeds import check_seed
from data.selection import Pool, TooFew, check_count, choose, describe_rows

DEFAULT_CLASSES = "even/odd"


def names() -> list[str]:
    """Names that `load` knows: image sets, then synthetic sets."""
    return [*SETS, *SYNTHETIC]


def describe(name: str) -> dict[str, Any]:
    """What is known of one set, JSON-able: kind, summary, N0, classes, default choices, whether it works offline, licence."""
    name = _known(name)
    if name in SETS:
        one = SETS[name]
        return {
            "name": name,
            "kind": "images",
            "summary": one.summary,
            "N0": one.N0,
            "training images": sum(one.counts),
            "classes": list(one.class_names),
            "default classes": DEFAULT_CLASSES,
            "default choice": "balanced, positives first" if one.balanced else "file order as it comes",
            "offline": one.embedded,
            "licence": one.licence,
        }
    return {
        "name": name,
        "kind": "synthetic",
        "summary": (inspect.getdoc(SYNTHETIC[name]) or "").split("\n\n")[0].replace("\n", " "),
        "parameters": {key: value for key, value in parameters(name).items() if key not in ("P", "P_test", "seed")},
        "offline": True,
        "licence": "none needed: generated",
    }


def load(
    name: str | os.PathLike[str],
    classes: str | None = None,
    P: int | None = None,
    seed: int | None = None,
    balanced: bool | None = None,
    labels: str = "true",
    label_seed: int = 0,
    standardise: str | None = None,
    P_test: int = 0,
    part: int = 0,
) -> Dataset:
    """A Dataset by name or from an `.npz` file.

    The same arguments give the same arrays on every machine, but for one case: a seeded subset of mnist or cifar10, or test
    rows, where only pieces of the set are at hand. `provenance["chosen from"]` says what there was to choose from.

    name         a name of `names()`, or the path of an `.npz` with X, y, optionally classes (data/userfile.py). Synthetic
                 sets take parameters after a colon: "gaussian:N0=50", "network-teacher:N0=20,N1=50,T=0.1"
    classes      which class indices are +1 and -1: "even/odd" (default), "first/second", "0/1", "0,1,2/3,4", "cat/dog"
    P            number of training patterns; None takes all there are (synthetic: 100)
    seed         None takes file order; a number a seeded subset without replacement (synthetic: the seed, None is 0)
    balanced     P/2 of each class, positives first; None is the set's own default: True for digits, fashion-mnist,
                 gaussian, clusters and linear-teacher, False for mnist, cifar10, network-teacher and files
    labels       "true"; "random", a permutation of y seeded by label_seed; "zero", all 0. `classes` of the Dataset stays
                 the true partition. y_test is treated like y, classes_test stays true
    standardise  "global" (default for images): X minus the mean of all its entries, over their standard deviation;
                 "feature": the same for each input, inputs that do not vary become 0;
                 "none" (default for synthetic sets and for a user's own file, whose numbers are studied as they are)
    P_test       test patterns: from the test split where the source has one, else from training rows not chosen; scaled with
                 the constants of the training rows
    part         0, 1, ...: that one of the disjoint subsets of P (and P_test) rows that one seed gives; real data only

    Raises InputError, naming the input and the mend, for every other value, too few patterns, one class only, a damaged or
    missing file, or a failed download.
    """
    check_labels(labels, label_seed)
    if seed is not None:
        seed = check_seed("seed", seed)
    if P is not None:
        P = check_count("P", P, 2)
    P_test = check_count("P_test", P_test, 0)
    part = check_count("part", part, 0)
    if balanced is not None and not isinstance(balanced, (bool, np.bool_)):
        raise InputError(f"balanced = {balanced!r}: give True, False or None")
    kind = None if standardise is None else kind_of(standardise)

    if _is_path(name):
        dataset = _from_file(Path(name), classes, P, seed, bool(balanced), kind or "none", P_test, part)
    else:
        base, _, options = str(name).partition(":")
        base = _known(base)
        if base in SETS:
            if options:
                raise InputError(f"{name!r}: only synthetic sets take parameters after a colon")
            even = SETS[base].balanced if balanced is None else bool(balanced)
            dataset = _from_images(
                SETS[base],
                DEFAULT_CLASSES if classes is None else classes,
                P,
                seed,
                even,
                kind or "global",
                P_test,
                part,
            )
        else:
            if part:
                raise InputError(
                    f"part = {part}: {base} is generated, so another seed gives other patterns; leave part out"
                )
            dataset = generate(base, options, classes, P, seed, balanced, kind or "none", P_test)
    return relabel(dataset, labels, label_seed)


def _is_path(name: str | os.PathLike[str]) -> bool:
    if not isinstance(name, (str, os.PathLike)):
        raise InputError(f"name = {name!r}: give the name of a data set or the path of an .npz file")
    text = os.fspath(name)
    if not isinstance(name, str) or text.endswith(".npz"):
        return True
    return _plain(text.partition(":")[0]) not in map(_plain, names()) and ("/" in text or os.path.isfile(text))


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "").replace("-", "").replace(" ", "")


def _known(name: str) -> str:
    """The registry's spelling of a name; raises InputError with the nearest one for an unknown name."""
    known = {_plain(one): one for one in names()}
    plain = _plain(str(name))
    if plain in known:
        return known[plain]
    near = difflib.get_close_matches(plain, list(known), n=1, cutoff=0.5)
    hint = f"did you mean {known[near[0]]!r}? " if near else ""
    raise InputError(
        f"unknown data set {name!r}: {hint}There are {', '.join(names())}, or give the path of an .npz file with X and y"
    )


def _build(
    name: str,
    pool: Pool,
    test: Pool | None,
    rows: np.ndarray,
    held_out: np.ndarray,
    kind: str,
    provenance: dict[str, Any],
    seed: int | None,
    balanced: bool,
    part: int = 0,
) -> Dataset:
    """The Dataset of chosen rows; test rows come from `test` where there is one, else from the pool itself."""
    scaling = Scaling.of(pool.X[rows], kind)
    provenance = {
        **provenance,
        "rows": describe_rows(pool.index[rows], pool.sign[rows], seed=seed, balanced=balanced, part=part),
        "standardise": scaling.describe(),
    }
    tests: dict[str, Any] = {}
    if len(held_out):
        source = pool if test is None else test
        tests = {
            "X_test": scaling.apply(source.X[held_out]),
            "y_test": source.y[held_out],
            "classes_test": source.sign[held_out],
        }
        provenance["test"] = {
            "from": "training rows not chosen" if test is None else "the test split",
            **describe_rows(source.index[held_out], source.sign[held_out], seed=seed, balanced=balanced),
        }
    return Dataset(
        scaling.apply(pool.X[rows]), pool.y[rows], pool.sign[rows], name=name, provenance=provenance, **tests
    )


def _pick(
    pool: Pool,
    test: Pool | None,
    P: int | None,
    seed: int | None,
    balanced: bool,
    P_test: int,
    what: str,
    part: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Training rows of the pool, and test rows of the test pool or else of the pool."""
    if test is None or not P_test:
        return choose(pool.sign, P, seed=seed, balanced=balanced, P_test=P_test, what=what, part=part)
    rows, _ = choose(pool.sign, P, seed=seed, balanced=balanced, what=what, part=part)
    held_out, _ = choose(test.sign, P_test, seed=seed, balanced=balanced, what=f"the test split of {what}", test=True)
    return rows, held_out


def _from_file(
    path: Path, classes: str | None, P: int | None, seed: int | None, balanced: bool, kind: str, P_test: int, part: int
) -> Dataset:
    found = userfile.read(path, classes)
    rows, held_out = _pick(found.pool, found.test, P, seed, balanced, P_test, path.name, part)
    return _build(path.stem, found.pool, found.test, rows, held_out, kind, found.facts, seed, balanced, part)


def _pool_of(images: Images, partition: Partition, counts: tuple[int, ...] | None) -> Pool:
    """Images of the partition's classes whose place in file order is certain.

    Where only pieces of a split are at hand, that is every row when all images of the chosen classes are there, and else
    the unbroken beginning of the file.
    """
    sign = partition.sign(images.labels)
    if images.part is not None and not np.array_equal(images.index, np.arange(len(images.index))):
        sizes = np.bincount(images.labels, minlength=10)
        if counts is None or any(sizes[k] != counts[k] for k in (*partition.plus, *partition.minus)):
            sign = np.where(images.index == np.arange(len(images.index)), sign, 0).astype(np.int8)
    return Pool(images.pixels, sign.astype(np.float64), sign, images.index)


def _from_images(
    one: ImageSet, classes: str, P: int | None, seed: int | None, balanced: bool, kind: str, P_test: int, part: int
) -> Dataset:
    partition = parse(classes, range(len(one.class_names)), one.class_names)
    what = f"{one.name} {partition.text}"
    short: TooFew | None = None
    sources = one.sources(P_test > 0)
    while True:
        try:
            source = next(sources, None)
        except InputError as error:
            if short is None:
                raise
            raise InputError(f"{short} of the files at hand. For the whole set: {error}") from None
        if source is None:
            assert short is not None  # every set has a source
            raise short
        images, test_images = source
        pool = _pool_of(images, partition, one.counts)
        test = None if test_images is None else _pool_of(test_images, partition, None)
        try:
            rows, held_out = _pick(pool, test, P, seed, balanced, P_test, what, part)
        except TooFew as error:
            short = error
            continue
        files = images.files if test_images is None else {**images.files, **test_images.files}
        provenance = {
            "source": one.name,
            "sha256": files,
            "chosen from": f"{images.part or f'all {len(images.labels)} images'} of the training split"
            if one.name != "digits"
            else f"all {len(images.labels)} images",
            "licence": one.licence,
            "classes": partition.describe(),
        }
        name = f"{one.name} {partition.text}"
        return _build(name, pool, test, rows, held_out, kind, provenance, seed, balanced, part)
