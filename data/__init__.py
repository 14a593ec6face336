"""What is studied: data sets and problems (the only package that the other three all use)."""

from data.errors import InputError
from data.problem import Dataset, Problem, check_for_zero_temperature
from data.registry import describe, load, names
from data.teacher import Teacher

__all__ = ["Dataset", "InputError", "Problem", "Teacher", "check_for_zero_temperature", "describe", "load", "names"]
