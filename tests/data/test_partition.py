"""Reading of `classes`: forms, names, and one error for each way to get it wrong."""

import numpy as np
import pytest

from data.errors import InputError
from data.images import SETS
from data.partition import parse

TEN = range(10)


@pytest.mark.parametrize(
    ("text", "plus", "minus"),
    [
        ("even/odd", (0, 2, 4, 6, 8), (1, 3, 5, 7, 9)),
        ("first/second", (0, 1, 2, 3, 4), (5, 6, 7, 8, 9)),
        ("first/second half", (0, 1, 2, 3, 4), (5, 6, 7, 8, 9)),
        ("first half / second half", (0, 1, 2, 3, 4), (5, 6, 7, 8, 9)),
        ("0/1", (0,), (1,)),
        ("7/ 3", (7,), (3,)),
        ("0,1,2/3,4", (0, 1, 2), (3, 4)),
        ("0-2,9/3-5", (0, 1, 2, 9), (3, 4, 5)),
    ],
)
def test_forms(text, plus, minus):
    found = parse(text, TEN)
    assert (found.plus, found.minus) == (plus, minus)


def test_sign_leaves_other_classes_out():
    sign = parse("0,1/7", TEN).sign(np.array([7, 0, 3, 1, 7]))
    assert sign.tolist() == [-1, 1, 0, 1, -1]


def test_names():
    cifar, fashion = SETS["cifar10"].class_names, SETS["fashion-mnist"].class_names
    for text in ("cat/dog", "Cat/DOG"):
        assert (parse(text, TEN, cifar).plus, parse(text, TEN, cifar).minus) == ((3,), (5,))
    assert parse("t-shirt,ankle boot/bag", TEN, fashion).plus == (0, 9)


def test_indices_of_a_user():
    assert parse("1/-1", [-1, 1]).minus == (-1,)
    assert parse("first/second", [3, 5, 8, 9]).plus == (3, 5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0", "one slash"),
        ("0/1/2", "one slash"),
        ("", "one slash"),
        (None, "one slash"),
        ("0/12", "no class 12; the classes are 0, 1, 2"),
        ("0,1/1,2", "class 1 is on both sides"),
        ("0/", "cannot read ''"),
        ("Odd/even", "cannot read .Odd."),
        ("kat/dog", "did you mean 'cat'"),
        ("5-2/1", "cannot read '5-2'"),
        ("0.5/1", "cannot read '0.5'"),
    ],
)
def test_errors(text, message):
    with pytest.raises(InputError, match=message):
        parse(text, TEN, SETS["cifar10"].class_names)


def test_empty_side_and_odd_halves():
    with pytest.raises(InputError, match="one side is empty; the classes at hand are -1, 1"):
        parse("even/odd", [-1, 1])
    with pytest.raises(InputError, match="3 classes have no halves"):
        parse("first/second", [0, 1, 2])
