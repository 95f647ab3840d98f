"""The line diff (P-18 to P-23) and the hunks made of it (P-14, P-15)."""

def lines_of(data):  # P-18
    lines = [l + b"\n" for l in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]

def common(a, i, ai, b, j, bj, end=False):
    """How many elements of a[i:ai] and b[j:bj] are equal at the beginning, or at the end."""
    n, most, step = 0, min(ai - i, bj - j), 1
    while n < most:
        s = min(step, most - n)
        if (a[ai - n - s:ai - n] == b[bj - n - s:bj - n]) if end else (a[i + n:i + n + s] == b[j + n:j + n + s]):
            n, step = n + s, step * 2
        elif s == 1:
            break
        else:
            step = s // 2
    return n

def point(a, b, x0, x1, y0, y1, most):
    """The point of P-22 in a trimmed box, relative to its corner. None if its distance is greater than most.

    F and R have the x of each diagonal, at index k + m + 1. A point that d steps cannot reach, but
    fewer can, is as good in them: it cannot be where the two searches meet first.
    """
    n, m = x1 - x0, y1 - y0
    delta, off, far = n - m, m + 1, n + m + 2
    odd = delta % 2
    F, R = [-1] * (n + m + 3), [far] * (n + m + 3)
    for d in range((most + odd) // 2 + 1):
        # Diagonals outside -m..n have no point of the box.
        for k in range(-d if d <= m else -m + (d - m) % 2, min(d, n) + 1, 2):
            i = k + off
            x, insert = F[i - 1] + 1, F[i + 1]
            if insert >= x or x == 0:
                x = insert
            if d == 0:
                x = 0
            elif x < 0:
                continue
            if x > n:
                x = n
            if x - k > m:
                x = m + k
            y = x - k
            if x < n and y < m and a[x0 + x] == b[y0 + y]:
                x += common(a, x0 + x, x1, b, y0 + y, y1)
            F[i] = x
            if odd and R[i] <= x:
                return x, x - k
        low = delta - d
        for k in range(low if low >= -m else -m + (low + m) % 2, min(delta + d, n) + 1, 2):
            i = k + off
            x, insert = R[i + 1] - 1, R[i - 1]
            if insert < x:
                x = insert
            if d == 0:
                x = n
            elif x > n:
                continue
            if x < 0:
                x = 0
            if x < k:
                x = k
            y = x - k
            if x > 0 and y > 0 and a[x0 + x - 1] == b[y0 + y - 1]:
                x -= common(a, x0, x0 + x, b, y0, y0 + y, True)
            R[i] = x
            if not odd and F[i] >= x:
                return x, x - k

def edits(old, new):
    """[a, b, c, d]: old[a:b] becomes new[c:d]."""
    names = {}
    a = [names.setdefault(l, len(names)) for l in old]
    b = [names.setdefault(l, len(names)) for l in new]
    out, first = [], True
    todo = [(0, len(a), 0, len(b))]
    while todo:
        x0, x1, y0, y1 = todo.pop()
        t = common(a, x0, x1, b, y0, y1)  # P-19
        x0, y0 = x0 + t, y0 + t
        t = common(a, x0, x1, b, y0, y1, True)
        x1, y1 = x1 - t, y1 - t
        if x0 == x1 or y0 == y1:
            p = None
        else:
            bound = min(4096, 2**29 // (x1 - x0 + y1 - y0)) if first else 2**62  # P-20
            p = point(a, b, x0, x1, y0, y1, bound)
        first = False
        if p is not None:  # P-21: the first box is done first
            todo.append((x0 + p[0], x1, y0 + p[1], y1))
            todo.append((x0, x0 + p[0], y0, y0 + p[1]))
        elif x0 < x1 or y0 < y1:
            if out and out[-1][1] == x0 and out[-1][3] == y0:  # P-23
                out[-1][1], out[-1][3] = x1, y1
            else:
                out.append([x0, x1, y0, y1])
    return out

def span(s, n):  # P-15
    return b"%d" % (s + 1) if n == 1 else b"%d,%d" % (s + 1 if n else s, n)

def hunks_of(old, new, edits, size):
    """P-14, P-15: the hunks of edits, size being the number of old lines. Sides may be lists, or maps of lines."""
    groups, out = [], []
    for e in edits:
        if groups and e[0] - groups[-1][-1][1] <= 6:
            groups[-1].append(e)
        else:
            groups.append([e])
    for g in groups:
        lead, trail = min(3, g[0][0]), min(3, size - g[-1][1])
        a, c, end = g[0][0] - lead, g[0][2] - lead, g[-1][1] + trail
        out.append(b"@@ -%s +%s @@\n" % (span(a, end - a), span(c, g[-1][3] + trail - c)))
        for e in g + [[end, end, 0, 0]]:
            for mark, side, x, y in ((b" ", old, a, e[0]), (b"-", old, e[0], e[1]), (b"+", new, e[2], e[3])):
                for n in range(x, y):
                    out.append(mark + side[n] + (b"" if side[n].endswith(b"\n") else b"\n\\ No newline at end of file\n"))
            a = e[1]
    return b"".join(out)

def body(before, after):
    """The hunks between two texts."""
    old, new = lines_of(before), lines_of(after)
    return hunks_of(old, new, edits(old, new), len(old))
