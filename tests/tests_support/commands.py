"""Command lines of the documents, parsed as the command itself would parse them."""

from typer.main import get_command

from compare.cli import app


def context(words):
    """Parse a command line as the command does, and run nothing. Raises the parser's error."""
    command, made = get_command(app), None
    while True:
        made = command.make_context(words[0], words[1:], parent=made)
        commands = getattr(command, "commands", None)
        if commands is None:
            return made
        words = [*made._protected_args, *made.args] if hasattr(made, "_protected_args") else made.args
        command = commands[words[0]]
