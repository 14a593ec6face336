"""MathML from a compact notation, so that equations are shown without network, script or images."""

from __future__ import annotations

import html
import re

OPERATORS = set("=+−-·×/()[]{}|,;:⟨⟩≈∝∈∘≥≤<>~→∼")
FUNCTIONS = {"log", "det", "exp", "Cov", "E"}
ACCENTS = {"bar": "\u0304", "tilde": "\u0303", "dot": "\u0307"}
THIN = '<mspace width="0.17em"/>'

_TOKEN = re.compile(r"\s+|\\text\{[^}]*\}|[A-Za-z]+|\d+(?:\.\d+)?|.")


def _atom(token: str) -> str:
    """One token as an MathML leaf: number, operator, upright function name, or italic identifier."""
    if re.fullmatch(r"\d+(\.\d+)?", token):
        return f"<mn>{token}</mn>"
    if token in FUNCTIONS:
        return f'<mrow>{THIN}<mi mathvariant="normal">{token}</mi>{THIN}</mrow>'
    if token in OPERATORS or token in "∑∏":
        stretchy = ' stretchy="false"' if token in "()[]|⟨⟩{}" else ""
        stretchy += ' lspace="0" rspace="0"' if token == "|" else ""
        return f"<mo{stretchy}>{html.escape(token)}</mo>"
    return f"<mi>{html.escape(token)}</mi>"


class _Reader:
    """Recursive descent over the notation of `mathml`."""

    def __init__(self, text: str):
        self.tokens = [t for t in _TOKEN.findall(text) if not t.isspace()]
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def group(self) -> str:
        """`{...}` as one row, or a single token."""
        if self.peek() != "{":
            return _atom(self.take())
        self.take()
        row = self.row()
        if self.peek() != "}":
            raise ValueError("unclosed { in an equation")
        self.take()
        return f"<mrow>{row}</mrow>"

    def base(self) -> str:
        token = self.peek()
        if token.startswith("\\text{"):
            return f"<mtext>{html.escape(self.take()[6:-1])}</mtext>"
        if token == "\\":
            self.take()
            command = self.take()
            if command == "frac":
                above, below = self.group(), self.group()
                return f"<mfrac>{above}{below}</mfrac>"
            if command in ACCENTS:
                return self.accented(ACCENTS[command])
            if command == "quad":
                return '<mspace width="1em"/>'
            if command == "bold":
                return f'<mn mathvariant="bold">{self.take()}</mn>'
            raise ValueError(f"unknown command \\{command} in an equation")
        return self.group()

    def accented(self, mark: str) -> str:
        """A letter with a combining mark, which text layout places well in every font; accents of MathML collide without a maths font."""
        braced = self.peek() == "{"
        if braced:
            self.take()
        letter = self.take()
        if len(letter) != 1 or not letter.isalpha() or (braced and self.take() != "}"):
            raise ValueError("an accent stands over one letter")
        return f'<mrow><mi style="font: italic 1em serif">{letter}{mark}</mi><mspace width="0.12em"/></mrow>'

    def row(self) -> str:
        """Everything up to the end or to the brace that closes this group."""
        out = []
        while self.peek() not in ("", "}"):
            base = self.base()
            sub = sup = ""
            while self.peek() in ("_", "^"):
                if self.take() == "_":
                    sub = self.group()
                else:
                    sup = self.group()
            if sub and sup:
                base = f"<msubsup>{base}{sub}{sup}</msubsup>"
            elif sub:
                base = f"<msub>{base}{sub}</msub>"
            elif sup:
                base = f"<msup>{base}{sup}</msup>"
            out.append(base)
        return "".join(out)


def mathml(text: str, alt: str = "", *, block: bool = True) -> str:
    r"""A `<math>` element from compact notation: `x_i^2`, `{...}` groups, `\frac{a}{b}`, `\bar Q`, `\tilde K`, `\dot K`,
    `\text{...}`, `\quad`, `\bold 1`.

    `alt` is what a reader without MathML, or a screen reader, gets. Raises ValueError on an unclosed group.
    """
    reader = _Reader(text)
    row = reader.row()
    if reader.at != len(reader.tokens):
        raise ValueError("unbalanced } in an equation")
    display = "block" if block else "inline"
    label = f' alttext="{html.escape(alt, quote=True)}"' if alt else ""
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML" display="{display}"{label}><mrow>{row}</mrow></math>'
