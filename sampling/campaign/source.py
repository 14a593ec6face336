"""A spec's text as plain values with the line of every key: TOML, or YAML read as YAML 1.2 means it; nothing is ever constructed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from data.errors import InputError

LARGEST = 1 << 18  # bytes of a spec; a grid is lists, not cells
DEEPEST = 16  # tables and lists in one another
Key = tuple[str | int, ...]

_NAME = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')"
_DOTTED = rf"{_NAME}(?:\s*\.\s*{_NAME})*"
_TABLE = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_PAIR = re.compile(rf"\s*({_DOTTED})\s*=(.*)")
_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'[^']*'")


class Source(NamedTuple):
    """values  what the file says; lines  the line of each key, list entries included where they are known."""

    values: dict[str, Any]
    lines: dict[Key, int]

    def line(self, key: Key) -> int | None:
        """The line of a key, or of the nearest thing around it that has one."""
        for path in (key, tuple(part for part in key if not isinstance(part, int))):
            for end in range(len(path), 0, -1):
                if path[:end] in self.lines:
                    return self.lines[path[:end]]
        return None


def read(path: Path) -> Source:
    """Read a .toml, .yaml or .yml. Raises InputError, with the line, for one that is too large, not UTF-8 or not well formed."""
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(f"{path.name}: larger than {LARGEST >> 10} KiB; a spec holds lists of values, not cells")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    if path.suffix == ".toml":
        return parse_toml(text, path.name)
    if path.suffix in (".yaml", ".yml"):
        return parse_yaml(text, path.name)
    raise InputError(f"{path.name}: a spec is a .toml file (or .yaml, .yml)")


def parse_toml(text: str, name: str = "spec") -> Source:
    """Of TOML text. Raises InputError with the parser's line and column."""
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError also for a whole number of thousands of digits
        raise InputError(f"{name}: {error}") from error
    return Source(values, toml_lines(text))


def toml_lines(text: str) -> dict[Key, int]:
    """The line of each table and key of valid TOML; keys inside an inline table or a list count as that one's line."""
    found: dict[Key, int] = {}
    counts: dict[Key, int] = {}
    prefix: Key = ()
    depth, closing = 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        if closing:  # inside a text of several lines
            _, end, line = line.partition(closing)
            if not end:
                continue
            closing = ""
            depth += _depth(line)
            continue
        if depth <= 0:
            table, pair = _TABLE.match(line), _PAIR.match(line)
            if table:
                names = _names(table.group(2))
                prefix = names
                if table.group(1) == "[[":
                    at = counts[names] = counts.get(names, -1) + 1
                    prefix = (*names, at)
                found.setdefault(names, number)
                found[prefix] = number
                continue
            if not pair:
                continue
            found[prefix + _names(pair.group(1))] = number
            line = pair.group(2)
            depth = 0
        for mark in ('"""', "'''"):
            if line.count(mark) % 2:
                closing = mark
                line = line[: line.rindex(mark)]
        depth += _depth(line)
    return found


def _names(dotted: str) -> Key:
    return tuple(part.strip("\"'") for part in re.findall(_NAME, dotted))


def _depth(line: str) -> int:
    """Brackets opened minus closed, outside quotes and comments."""
    bare = _QUOTED.sub("", line).partition("#")[0]
    return sum(bare.count(one) for one in "[{") - sum(bare.count(one) for one in "]}")


def parse_yaml(text: str, name: str = "spec") -> Source:
    """Of YAML text, built by hand from the parsed nodes.

    YAML 1.1, which the usual reader implements, takes `off` for false, `1e-3` for a text, 1:30 for 90 and 010 for 8. Here plain
    scalars are read as YAML 1.2's core schema says. Tags, anchors, merges, several documents and repeated keys are refused.
    Raises InputError with the line.
    """
    import yaml

    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            line = event.start_mark.line + 1
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:  # the parser's time grows with the square of it
                raise InputError(f"{name}, line {line}: nested too deeply")
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
                raise InputError(f"{name}, line {line}: anchors and aliases are not taken; write the value out")
            if getattr(event, "tag", None) is not None:
                raise InputError(f"{name}, line {line}: tag {event.tag!r}: a spec holds plain values only; remove it")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise InputError(f"{name}{where}: {getattr(error, 'problem', None) or error}") from error
    if not isinstance(node, yaml.MappingNode):
        raise InputError(f"{name}: a spec is a table of keys")
    lines: dict[Key, int] = {}
    return Source(_plain(node, (), lines, name), lines)


_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None}


def _plain(node: Any, key: Key, lines: dict[Key, int], name: str) -> Any:
    import yaml

    lines[key] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        table: dict[str, Any] = {}
        for left, right in node.value:
            line = left.start_mark.line + 1
            if not isinstance(left, yaml.ScalarNode) or left.value == "<<":
                raise InputError(f"{name}, line {line}: a key must be a plain word")
            if left.value in table:
                raise InputError(f"{name}, line {line}: {left.value!r} stands there twice")
            table[left.value] = _plain(right, (*key, left.value), lines, name)
            lines[(*key, left.value)] = line
        return table
    if isinstance(node, yaml.SequenceNode):
        return [_plain(one, (*key, at), lines, name) for at, one in enumerate(node.value)]
    text = node.value
    if node.style is not None:  # quoted, or a block of text
        return text
    if text.lower() in _WORDS and text in (text.lower(), text.title(), text.upper()):
        return _WORDS[text.lower()]
    if _INT.fullmatch(text):
        return int(text) if len(text) < 20 else float(text)
    return float(text) if _FLOAT.fullmatch(text) else text
