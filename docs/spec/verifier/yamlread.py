"""The part of YAML that a Policy file may use (Y-1 to Y-3)."""
import re

import ucd
from cjson import Refused, need

INT = re.compile(r"0|-?[1-9][0-9]*")
NOT_TEXT = re.compile(  # numbers in other forms, floats, null and other spellings of the core schema (Y-3)
    r"[-+]?[0-9][0-9_]*|[-+]?0[xob][0-9a-fA-F_]+|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
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

class Reader:
    def __init__(self, data):
        need(len(data) <= 65536, "Y-1: too long")
        try:
            lines = data.decode("utf-8").split("\n")
        except UnicodeDecodeError:
            raise Refused("Y-1: not UTF-8")
        self.lines = [check_text(l[:-1] if l.endswith("\r") and n < len(lines) - 1 else l) for n, l in enumerate(lines)]
        need(all(not l.strip(" ") or not l.startswith(" " * 64) for l in self.lines), "Y-2: indented too far")
        self.row, self.col = 0, 0

    def rest(self):
        return self.lines[self.row][self.col:] if self.row < len(self.lines) else ""

    def document(self):
        self.content()
        need(self.row < len(self.lines), "Y-2: nothing")
        if self.marker("---"):
            self.col = 3
            self.end_of_line()
            self.content()
            need(self.row < len(self.lines) and not self.marker("---"), "Y-2: nothing, or a second document")
        need(not self.marker("..."), "Y-2: nothing")
        v = self.node(0)
        self.content()
        if self.marker("..."):
            self.col = 3
            self.end_of_line()
            self.content()
        need(self.row >= len(self.lines), "Y-2: something behind the document")
        return v

    def marker(self, m):
        l = self.lines[self.row] if self.row < len(self.lines) else ""
        return l == m or l.startswith(m + " ")

    def content(self):
        """To the next character that is neither white space nor comment, if the line is not begun."""
        while self.row < len(self.lines):
            rest = self.rest()
            if rest.strip(" ") and not (rest.lstrip(" ")[0] == "#" and (self.col == 0 or rest[0] == " ")):
                self.col += len(rest) - len(rest.lstrip(" "))
                return
            self.row, self.col = self.row + 1, 0

    def end_of_line(self):
        rest = self.rest()
        need(not rest.strip(" ") or rest[0] == " " and rest.lstrip(" ")[0] == "#", "Y-2: something behind a value")
        self.row, self.col = self.row + 1, 0

    def at(self):
        """Column of the next content line, or -1 at the end of the document."""
        self.content()
        return -1 if self.row >= len(self.lines) or self.marker("---") or self.marker("...") else self.col

    def node(self, indent, dashes=0):
        """A block node whose first character is here; it may be a collection of this column."""
        col, rest = self.col, self.rest()
        if rest == "-" or rest.startswith("- "):
            return self.sequence(col, dashes)
        need(not (rest == "?" or rest.startswith("? ")), "Y-2: complex key")
        save = self.row, self.col
        if rest[0] not in "[{":
            self.scalar(False)
            after = self.rest().lstrip(" ")
            self.row, self.col = save
            if after == ":" or after.startswith(": "):
                return self.mapping(col)
        v = self.flow(1, indent) if rest[0] in "[{" else self.scalar(False)
        self.end_of_line()
        return v

    def sequence(self, col, dashes):
        out = []
        while True:
            need(dashes < 4, "Y-2: too many dashes")
            row = self.row
            self.col += 1
            need(self.value_here(col, False), "Y-3: nothing")
            out.append(self.node(col + 1, dashes + 1 if self.row == row else 0))
            if self.at() != col or not (self.rest() == "-" or self.rest().startswith("- ")):
                need(self.at() <= col, "Y-2: indentation")  # equal: the next key of a mapping that this is in
                return out

    def value_here(self, col, dash):
        """Goes to a value behind a dash or colon, here or on a later line; false if there is none."""
        rest = self.rest()
        if rest.strip(" ") and rest.lstrip(" ")[0] != "#":
            self.col += len(rest) - len(rest.lstrip(" "))
            return True
        self.row, self.col = self.row + 1, 0
        there = self.at()
        return there > col or dash and there == col and (self.rest() == "-" or self.rest().startswith("- "))

    def mapping(self, col):
        out = {}
        while True:
            rest = self.rest()
            need(rest[0] not in "[{" and rest != "?" and not rest.startswith("? "), "Y-2: key")
            key = self.scalar(False)
            key = key if isinstance(key, str) else str(key)
            need(key != "<<" and key not in out, "Y-2: key")
            self.col += len(self.rest()) - len(self.rest().lstrip(" "))
            need(self.rest() == ":" or self.rest().startswith(": "), "Y-2: no colon")
            self.col += 1
            row = self.row
            need(self.value_here(col, True), "Y-3: nothing")
            if self.row == row:  # on the line of the key there is no block collection
                need(self.rest() != "-" and not self.rest().startswith("- "), "Y-2: sequence behind a key")
                out[key] = self.flow(1, col + 1) if self.rest()[0] in "[{" else self.scalar(False)
                self.end_of_line()
            else:
                out[key] = self.node(col + 1)
            if self.at() != col:
                need(self.at() < col, "Y-2: indentation")
                return out
            if self.rest() == "-" or self.rest().startswith("- "):
                raise Refused("Y-2: dash in a mapping")

    def flow_space(self, indent):
        """White space in a flow collection, which may go over lines."""
        row = self.row
        if self.col and self.rest()[:1] not in ("", " "):
            return
        self.content()
        need(self.row < len(self.lines), "Y-2: flow collection not closed")
        need(self.row == row or self.col >= indent and not self.marker("---") and not self.marker("..."), "Y-2: indentation")

    def flow(self, depth, indent):
        need(depth <= 8, "Y-2: too deep")
        opening = self.rest()[0]
        closing = "]" if opening == "[" else "}"
        out = [] if opening == "[" else {}
        self.col += 1
        while True:
            self.flow_space(indent)
            if self.rest().startswith(closing):
                self.col += 1
                return out
            row, quoted = self.row, self.rest()[0] in "\"'["
            v = self.flow(depth + 1, indent) if self.rest()[0] in "[{" else self.scalar(True)
            self.flow_space(indent)
            pair = self.rest().startswith(":")
            need(opening == "{" or not pair or self.row == row, "Y-2: key over lines")
            if pair:
                need(not isinstance(v, (list, dict)), "Y-2: key")
                self.col += 1
                need(quoted or self.rest()[:1] in ("", " "), "Y-2: colon")
                self.flow_space(indent)
                need(self.rest()[0] not in ",]}", "Y-3: nothing")
                key = v if isinstance(v, str) else str(v)
                v = self.flow(depth + 1, indent) if self.rest()[0] in "[{" else self.scalar(True)
                self.flow_space(indent)
                if opening == "{":
                    need(key != "<<" and key not in out, "Y-2: key")
                    out[key] = v
                else:
                    out.append({key: v})
            else:
                need(opening == "[", "Y-3: key without a value")
                out.append(v)
            if self.rest().startswith(","):
                self.col += 1
            else:
                need(self.rest().startswith(closing), "Y-2: no comma")

    def scalar(self, in_flow):
        rest = self.rest()
        if rest[0] == "'":
            m = re.match(r"'((?:[^']|'')*)'", rest)
            need(m, "Y-2: quotes")
            self.col += m.end()
            return check_text(m.group(1).replace("''", "'"))
        if rest[0] == '"':
            m = re.match(r'"((?:[^"\\]|\\.)*)"', rest)
            need(m, "Y-2: quotes")
            self.col += m.end()
            return check_text(re.sub(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", self.escape, m.group(1)))
        follows = rest[1:2] not in ("", " ") and not (in_flow and rest[1:2] in ",[]{}")
        need(rest[0] not in ",[]{}#&*!|>'\"%@`" and (rest[0] not in "-?:" or follows), "Y-2: indicator")
        end = 0
        while end < len(rest):
            c, n = rest[end], rest[end + 1:end + 2]
            if c == ":" and (n in ("", " ") or in_flow and n in ",[]{}") or c == "#" and rest[end - 1] == " " or in_flow and c in ",[]{}":
                break
            end += 1
        text = rest[:end].rstrip(" ")
        self.col += len(text)
        return plain(text)

    @staticmethod
    def escape(m):
        e = m.group(1)
        if len(e) > 1:
            need(int(e[1:], 16) < 0x110000, "Y-2: escape")
            return chr(int(e[1:], 16))
        need(e in ESCAPES, "Y-2: escape")
        return ESCAPES[e]

def read(data):
    return Reader(data).document()
