"""Properties of Unicode 15.0.0 (U-1 to U-5), whatever version this Python has.

A newer Python knows more characters: those outside ASSIGNED count as
unassigned. Unicode 14 (Python 3.11) lacks those of ADDED. Version 15.0.0 added
no case mapping and no canonical decomposition; the compatibility
decompositions it added give Cyrillic letters only, which no requirement can
tell from the characters themselves.
"""
import base64
import bisect
import functools
import itertools
import sys
import unicodedata
import zlib

# Characters that 15.0.0 has and 14.0.0 has not: first, last, category.
ADDED = [tuple(int(x, 16) for x in s.split(":")[0].split("-")) + (s.split(":")[1],) for s in """
CF3-CF3:Mc ECE-ECE:Mn 10EFD-10EFF:Mn 1123F-11240:Lo 11241-11241:Mn 11B00-11B09:Po 11F00-11F01:Mn 11F02-11F02:Lo 11F03-11F03:Mc 11F04-11F10:Lo
11F12-11F33:Lo 11F34-11F35:Mc 11F36-11F3A:Mn 11F3E-11F3F:Mc 11F40-11F40:Mn 11F41-11F41:Mc 11F42-11F42:Mn 11F43-11F4F:Po 11F50-11F59:Nd 1342F-1342F:Lo
13439-1343F:Cf 13440-13440:Mn 13441-13446:Lo 13447-13455:Mn 1B132-1B132:Lo 1B155-1B155:Lo 1D2C0-1D2D3:No 1DF25-1DF2A:Ll 1E030-1E06D:Lm 1E08F-1E08F:Mn
1E4D0-1E4EA:Lo 1E4EB-1E4EB:Lm 1E4EC-1E4EF:Mn 1E4F0-1E4F9:Nd 1F6DC-1F6DC:So 1F774-1F776:So 1F77B-1F77F:So 1F7D9-1F7D9:So 1FA75-1FA77:So 1FA87-1FA88:So
1FAAD-1FAAF:So 1FABB-1FABD:So 1FABF-1FABF:So 1FACE-1FACF:So 1FADA-1FADB:So 1FAE8-1FAE8:So 1FAF7-1FAF8:So 2B739-2B739:Lo 31350-323AF:Lo""".split()]

# Their canonical combining classes that are not 0.
CLASSES = {0x0ECE: 122, 0x11F41: 9, 0x11F42: 9, 0x1E08F: 230, 0x1E4EC: 232, 0x1E4ED: 232,
           0x1E4EE: 220, 0x1E4EF: 220, 0x10EFD: 220, 0x10EFE: 220, 0x10EFF: 220}

# All characters that are assigned in 15.0.0: lengths of what is not and what is, in turn, in base 36; zlib, base64.
ASSIGNED = """
eNp1VgmWozoMvIqP0F4AcxxCICvZl86c/leVRTo978/Lg4CQZakklfzljkcXXO2Sa5zXb4droceAL37ALfJt67K7QK92C9dsKOHKcHOD8wdqLnEbIb/yhUZc5R74p/maVjP18ZvwXHaLsBdca/IEDS
+Jx9LgTrZ1LdnPuvC+ykaVfY/SbvDm9b92nSStdvK/1tN+Z/IoySgrPTQak//t77xu9jdCGj/83cBikL/Fk2SWvdZG8zBijwT9Waes8IBxD+nS9j7gWmkvb3qNNKNFnuR/I99m/e7t3+eaWivSO97+
vYcf7YEAc7OzvW9wPxpw3Kwxc7UFk/HUKZze+Qkfbs77d6gVrqM9szAqe27kIl1/uvBF0RdTFcuTV+0saajavO3A6bV5P9enEKvs4ft/PtKO38+aD9ye8PRMIAbDY7MnkGvh18LZFlX/gwurIEwCrN
altdT2Db16QcjCZh57VRtW1Yp04XyG5KwugfRMF4AOEAqQFHP04qF+YRX4BQ1k1v4RryNFx7IXl+Sy6XCfUxnsIVvI84+B+rXhWAL1bmstxEyGm3wO6GICHQHeqCs+4fJmRL8tUIN+6AUZFp0YbfuR
DL9TSQ2CrLGc/uuKG/dSSQG63lV8FlpXiuhgeNCsOotlHHqWE9GY9id6vcUm7RGpqcgM1UHFPdfYkawThSe8ysxKxvqaUC7cnfmtRUJJRSJjg3KqjY+gqU44lusnHICf6HtJf57o1YF+L9kBV+YhvJ
iGhlHhdzZ4/Ac1xTUaqicj+o2sPlkhdWm5rWozaVG8zCRGrvrxp3BF8alT4MBGW21ti1GJeLk4ikwSM4WgV5ZcLyhhdELtRXo/IuTEVmsBT1XK6k49ejPQvzRY1KUzdRMpr4Bjb6U1M+Hi9/vD5QMs
T1ifga6ooi6V920c5Nkc3ioyiLLAA5kqvYVVIVkRBSo8r8xsQv41hsrnbD16k5kkDlTuroQ4qiNbgh6lclF+GolRuWB0lQLSsOStIUKZLtfqaHkcC71HIpQpmoh7AHo7xxBDPcPon+JUTqqm4LYWe2
Z6AsWjxunCbSwb5w+eKuCREjwLuxMJ/2vmFOIMNkXKvKjUiqRmpB/Nv5PsXiDtXJqIgvjixRQstMWSOE/iIXy9iC0ToqoqjXOMbiY6Wx1nc+Buw5bQdqXTApEjP13Khli3JLjC4V4mRysi6lR/T4tp
KEo2LXIpVL20cltNUj7OH2oZzZNQJsCe9X4lhwjEATufMGjQ81EY4OCBaQbj4YJPd8oHt2pcfbi58QYjDwGK8dDqoXaFXLtC7Z1Bz3G8dVuobcmdQT22Lz5ctQ0bMJ1XcPyl/mld/SzHjznCHJXmm+
Vt0BlngWl3hdk/mvdR9dsJ7jjtCq6ss6iJADA7lhOKnycEeIhgOK14hRF6J5EIh5f/8z4VzScqr76dx69GUbLMNjqrlVqs7DhGWcujQKbWduNGfRrd/QjUmJzqW0prG7qlPivWNmk2Gg0VItFOTyxc
s+hoqBcP7iatTW8mgw0aXDG1IamtuXZ/Y4tB4E+MnvqXuTrs3pmd8qt/vfn3PP/R//s3f5uTlj4sdIpTM1rOr0mEQYdfDnl0Sy8WHi0Gr6q6k7Vu5BcqtTYw0d2du3D+rWGPWY8cTeGAL73Rgf531g
Yi3nvJY82c9AJ1rhdfqjSrpFojwWQHdTlyndzzdeTZp+H2NTk4rehLddmjeRo38iCF7rhxEsS8cmPbVGp3MFfcuRr8Nei2G8TB/PsPlGhwkw=="""

_edges = list(itertools.accumulate((int(n, 36) for n in zlib.decompress(base64.b64decode(ASSIGNED)).decode().split()), initial=0))
_have = tuple(map(int, unicodedata.unidata_version.split(".")[:2]))
_added = {c: g for a, b, g in ADDED for c in range(a, b + 1)} if _have < (15, 0) else {}
if _have < (14, 0):
    sys.exit("this Python's Unicode is older than 14")

@functools.lru_cache(None)
def category(ch):
    """General category in 15.0.0 (U-1)."""
    c = ord(ch)
    return "Cn" if c >= 0x300 and bisect.bisect_right(_edges, c) % 2 else _added.get(c) or unicodedata.category(ch)

def assigned(ch):
    return category(ch) != "Cn"

HIDDEN = [(0x34F, 0x34F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180D), (0x180F, 0x180F),
          (0x2065, 0x2065), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8),
          (0xE0000, 0xE0000), (0xE0002, 0xE001F), (0xE0080, 0xE00FF), (0xE0100, 0xE01EF), (0xE01F0, 0xE0FFF)]
BLANK = "\u2800\uFFFC\U00016FE4\U00013441\U00013442\U0001D159"

def hidden_ignorable(ch):  # U-2
    return ch >= "\u034f" and any(a <= ord(ch) <= b for a, b in HIDDEN)

def printable(ch):  # U-3
    return ch == " " or category(ch)[0] in "LMNPS"

def visible(ch):  # U-3
    return printable(ch) and not hidden_ignorable(ch) and ch not in BLANK

def one_line(text, n):  # U-4
    return len(text) <= n and all(visible(c) and c != "\ufffd" for c in text) and text == text.strip(" ") and "  " not in text

def _parts(text):
    """Runs of characters that are assigned and that are not, in turn."""
    return ("".join(g) for _, g in itertools.groupby(text, assigned))

def _ccc(ch):
    return (CLASSES.get(ord(ch)) or unicodedata.combining(ch)) if assigned(ch) else 0

def nfd(text):
    out = "".join(unicodedata.normalize("NFD", p) if assigned(p[0]) else p for p in _parts(text))
    # Canonical ordering again: a stable sort of each run of non-starters, with the classes of 15.0.0.
    runs = ("".join(sorted(g, key=_ccc)) if marks else "".join(g) for marks, g in itertools.groupby(out, lambda c: _ccc(c) > 0))
    return "".join(runs)

def nfc(text):
    out, starter, last = [], -1, 0
    for ch in nfd(text):
        c = _ccc(ch)
        if starter >= 0 and (starter == len(out) - 1 or last < c) and assigned(ch):
            both = unicodedata.normalize("NFC", out[starter] + ch)
            if len(both) == 1 and assigned(both):
                out[starter] = both
                continue
        out.append(ch)
        starter, last = len(out) - 1 if c == 0 else starter, c
    return "".join(out)

def fold(text):  # U-5
    if text.isascii():
        return text.lower()
    return nfc("".join(c.casefold() if assigned(c) else c for c in nfd(text)))

def simple_fold(ch):
    """Simple case folding (statuses C and S)."""
    f = ch.casefold() if assigned(ch) else ch
    return f if len(f) == 1 else ch.lower() if len(ch.lower()) == 1 else ch

def nfkc(text):
    return "".join(unicodedata.normalize("NFKC", p) if assigned(p[0]) else p for p in _parts(text))
