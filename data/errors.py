"""The one error for bad input: every package raises it with the name of the input and the mend."""


class InputError(ValueError):
    """Bad input from the user. The message names the input, what is wrong, and how to mend it; the CLI exits with 2."""
