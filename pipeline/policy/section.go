package policy

import (
	"fmt"
	"strconv"
	"strings"
)

// secrets is a word, or a mapping with the word as mode.
func secrets(s *Secrets) read {
	return func(r *reader, n node, key string) {
		if n.kind == isText {
			word(&s.Mode, secretsModes)(r, n, key)
			return
		}
		if !r.is(n, key, isMapping, isText) {
			return
		}
		r.mapping(n, key,
			field{"mode", word(&s.Mode, secretsModes)},
			field{"seal_to", texts(&s.SealTo, recipientForm)},
		)
	}
}

func limits(l *Limits) read {
	return func(r *reader, n node, key string) {
		r.mapping(n, key,
			field{"files", number(&l.Files, 1, mostFiles)},
			field{"bytes", size(&l.Bytes)},
		)
	}
}

// size reads bytes: a number, or one with a unit.
func size(dst *int64) read {
	units := map[string]int64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
	return func(r *reader, n node, key string) {
		if n.kind == isInteger {
			number(dst, 1, mostSize)(r, n, key)
			return
		}
		if !r.is(n, key, isInteger, isText) {
			return
		}
		var s string
		if text(&s, sizeForm)(r, n, key); s == "" {
			return
		}
		digits := strings.TrimRight(s, " BKMGi")
		count, _ := strconv.ParseInt(digits, 10, 64)
		if unit := units[strings.TrimSpace(s[len(digits):])]; count <= mostSize/unit {
			*dst = count * unit
			return
		}
		r.problem(n.mark, key, fmt.Sprintf("is %s, more than 1 GiB", s))
	}
}

func apply(a *Apply) read {
	return func(r *reader, n node, key string) {
		r.mapping(n, key,
			field{"to", word(&a.To, targets)},
			field{"sign", text(&a.Sign, variableForm)},
		)
	}
}

func gate(g *Gate) read {
	return func(r *reader, n node, key string) {
		r.mapping(n, key, field{"bases", texts(&g.Bases, branchForm)})
	}
}

func ledger(l *Ledger) read {
	return func(r *reader, n node, key string) {
		r.mapping(n, key,
			field{"tip", text(&l.Tip, commitForm)},
			field{"since", text(&l.Since, timeForm)},
		)
	}
}
