package policy

import "fmt"

// protected reads the rules; globs are counted over all of them, as each is
// asked about each path.
func protected(dst *[]Rule) read {
	globs := 0
	return list(func(r *reader, n node, key string) {
		rule := Rule{Required: 1}
		ok := r.mapping(n, key,
			field{"paths", paths(&rule.Paths)},
			field{"required", number(&rule.Required, 1, mostApprovals)},
			field{"users", filled(accounts(&rule.Users), "which lets anybody approve; leave it out for that")},
			field{"teams", filled(texts(&rule.Teams, teamForm), "which lets anybody approve; leave it out for that")},
			field{"owners", boolean(&rule.Owners)},
		)
		globs += len(rule.Paths)
		switch {
		case ok && !n.has("paths"):
			r.problem(n.mark, key, "has no paths")
		case globs > mostGlobs && !r.joined:
			r.problem(n.mark, key, fmt.Sprintf("more than %d globs", mostGlobs))
		}
		*dst = append(*dst, rule)
	})
}

// has reports whether a mapping has a key.
func (n node) has(key string) bool {
	for _, k := range n.keys {
		if k.text == key {
			return true
		}
	}
	return false
}

// filled refuses an empty list, which would mean less than it seems to.
func filled(list read, why string) read {
	return func(r *reader, n node, key string) {
		list(r, n, key)
		if n.kind == isSequence && len(n.values) == 0 {
			r.problem(n.mark, key, "is an empty list, "+why)
		}
	}
}

func paths(dst *[]string) read {
	return func(r *reader, n node, key string) {
		filled(texts(dst, anyText(mostGlob)), "which protects nothing")(r, n, key)
		if n.kind != isSequence {
			return
		}
		for i, v := range n.values {
			if _, err := ParseGlob(v.text); err != nil && v.kind == isText {
				r.problem(v.mark, fmt.Sprintf("%s[%d]", key, i), err.Error())
			}
		}
	}
}
