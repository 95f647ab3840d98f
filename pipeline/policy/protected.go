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
			field{"users", accounts(&rule.Users)},
			field{"teams", texts(&rule.Teams, teamForm)},
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

// has tells whether a mapping has a key.
func (n node) has(key string) bool {
	for _, k := range n.keys {
		if k.text == key {
			return true
		}
	}
	return false
}

func paths(dst *[]string) read {
	return func(r *reader, n node, key string) {
		texts(dst, anyText(mostGlob))(r, n, key)
		if n.kind != isSequence {
			return
		}
		if len(n.values) == 0 {
			r.problem(n.mark, key, "is an empty list, which protects nothing")
		}
		for i, v := range n.values {
			if _, err := ParseGlob(v.text); err != nil && v.kind == isText {
				r.problem(v.mark, fmt.Sprintf("%s[%d]", key, i), err.Error())
			}
		}
	}
}
