"""The part of YAML that a Policy file may use (Y-1 to Y-3)."""
import re

import ucd
from cjson import Refused, need

INT = re.compile(r"0|-?[1-9][0-9]*")
NOT_TEXT = re.compile(  # numbers in other forms, floats, null and other spellings of the core schema (Y-3)
    r"(?!0[0-9]*[89])[-+]?[0-9][0-9_]*|[-+]?0[xob][0-9a-fA-F_]+|[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)|~|null|Null|NULL|True|TRUE|False|FALSE|")
ESCAPES = {"0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b", " ": " ",
           '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"}

def check_text(text):  # Y-1
    need(all(ucd.printable(c) and not ucd.hidden_ignorable(c) for c in text), "Y-1: character")
    return text

def plain(text):  # Y-3
    if INT.fullmatch(text):
        return int(text)
    need(not NOT_TEXT.fullmatch(text), "Y-3: " + text)
    return text == "true" if text in ("true", "false") else text

# White space and comments, over lines. A comment begins a line, or is behind a space.
SKIP = re.compile(r"(?: *(?:(?<=[ \n])#[^\n]*)?\n)* *")
MARKER = re.compile(r"(?<=\n)(---|\.\.\.)(?=[ \n])")
DASH, COLON = re.compile(r"-(?=[ \n])"), re.compile(r" *:(?=[ \n])")
QUOTED = re.compile(r"""'((?:[^'\n]|'')*)'|"((?:[^"\\\n]|\\[^\n])*)\"""")
PLAIN = [re.compile(r"""(?:[^\s,\[\]{}#&*!|>'"%@`?:-]|[?:-](?=[^ \n"""+f+r"""]))(?:[^:# \n"""+f+r"""]|:(?![ \n"""+f+r"""])|(?<! )\#| )*""")
         for f in ("", r",\[\]{}")]  # in blocks, in flow collections

class Reader:
    """Reads self.text at self.at; there is a line before it, so that each line begins behind an LF."""

    def __init__(self, data):
        need(len(data) <= 65536, "Y-1: too long")
        try:
            lines = data.decode("utf-8").split("\n")
        except UnicodeDecodeError:
            raise Refused("Y-1: not UTF-8")
        lines = [check_text(l[:-1] if l.endswith("\r") and n < len(lines) - 1 else l) for n, l in enumerate(lines)]
        need(all(l.lstrip(" ")[:1] in ("", "#") or not l.startswith(" " * 64) for l in lines), "Y-2: indented too far")
        self.text, self.at = "\n" + "\n".join(lines) + "\n", 1

    def char(self):
        return self.text[self.at:self.at + 1]

    def take(self, form):
        m = form.match(self.text, self.at)
        self.at = m.end() if m else self.at
        return m

    def skip(self):
        """Whether what is passed over has the end of a line."""
        return "\n" in self.take(SKIP).group()

    def column(self):
        """-1 at the end of the document."""
        end = self.at >= len(self.text) or MARKER.match(self.text, self.at)
        return -1 if end else self.at - self.text.rfind("\n", 0, self.at) - 1

    def document(self):
        self.skip()
        m = self.take(MARKER)
        need(not m or m.group(1) == "---" and self.skip(), "Y-2: something behind a marker")
        need(self.column() >= 0, "Y-2: nothing")
        v = self.block(0)
        m = self.take(MARKER)
        need((not m or m.group(1) == "..." and self.skip()) and self.at >= len(self.text), "Y-2: something behind the document")
        return v

    def block(self, indent):
        """A block node whose first character is here; goes to what follows it."""
        col, start = self.column(), self.at
        if DASH.match(self.text, self.at):
            return self.sequence(col)
        if self.char() in "[{":
            return self.inline(indent)
        self.scalar(False)
        if COLON.match(self.text, self.at):
            self.at = start
            return self.mapping(col)
        self.at = start
        return self.inline(indent)

    def inline(self, indent):
        v = self.flow(1, indent) if self.char() in "[{" else self.scalar(False)
        need(self.skip(), "Y-2: something behind a value")
        return v

    def sequence(self, col):
        out = []
        while self.column() == col and self.take(DASH):
            need(self.text[self.text.rfind("\n", 0, self.at):self.at].count("-") <= 4, "Y-2: too many dashes")
            self.skip()
            need(self.column() > col, "Y-3: nothing")
            out.append(self.block(col + 1))
        need(self.column() <= col, "Y-2: indentation")  # equal: the next key of a mapping that this is in
        return out

    def mapping(self, col):
        out = {}
        while self.column() == col:
            key = str(self.scalar(False))
            need(self.take(COLON) and key != "<<" and key not in out, "Y-2: key")
            if self.skip():
                dash = DASH.match(self.text, self.at)
                need(self.column() > col or self.column() == col and dash, "Y-3: nothing")
                out[key] = self.block(col + 1)
            else:  # on the line of the key there is no block collection
                need(not DASH.match(self.text, self.at), "Y-2: sequence behind a key")
                out[key] = self.inline(col + 1)
        need(self.column() < col, "Y-2: indentation")
        return out

    def gap(self, indent):
        """White space in a flow collection. Whether it goes over lines."""
        over = self.skip()
        need(not over or self.column() >= indent, "Y-2: indentation, or a flow collection that is not closed")
        return over

    def flow(self, depth, indent):
        need(depth <= 8, "Y-2: too deep")
        opening = self.char()
        out, closing = ([], "]") if opening == "[" else ({}, "}")

        def value():
            return self.flow(depth + 1, indent) if self.char() in "[{" else self.scalar(True)

        self.at += 1
        self.gap(indent)
        while self.char() != closing:
            begin, quoted = self.at, self.char() in "\"'["
            v = value()
            self.gap(indent)
            if self.char() == ":":
                need(not isinstance(v, (list, dict)) and (opening == "{" or "\n" not in self.text[begin:self.at]), "Y-2: key")
                self.at += 1
                need(quoted or self.char() in " \n", "Y-2: colon")
                self.gap(indent)
                key, v = str(v), value()
                need(opening == "[" or key != "<<" and key not in out, "Y-2: key")
                self.gap(indent)
                out.append({key: v}) if opening == "[" else out.update({key: v})
            else:
                need(opening == "[", "Y-3: key without a value")
                out.append(v)
            need(self.char() in (",", closing), "Y-2: no comma")
            if self.char() == ",":
                self.at += 1
                self.gap(indent)
        self.at += 1
        return out

    def scalar(self, in_flow):
        m = self.take(QUOTED)
        if m:
            single, double = m.groups()
            return check_text(single.replace("''", "'") if double is None else re.sub(
                r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", self.escape, double))
        m = self.take(PLAIN[in_flow])
        need(m, "Y-2: quotes, indicator, or nothing")
        text = m.group().rstrip(" ")
        self.at -= len(m.group()) - len(text)
        return plain(text)

    @staticmethod
    def escape(m):
        e = m.group(1)
        code = int(e[1:], 16) if len(e) > 1 else 0
        need(code < 0x110000 and (len(e) > 1 or e in ESCAPES), "Y-2: escape")
        return chr(code) if len(e) > 1 else ESCAPES[e]

def read(data):
    return Reader(data).document()
