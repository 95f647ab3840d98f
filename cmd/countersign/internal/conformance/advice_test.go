package conformance

import (
	"strings"

	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// adviceDoc is what a tool said of a record's patch, with what replaces or, where it is nil, leaves out members.
func adviceDoc(r *record, doc m) m {
	all := m{
		"schema": "countersign/advice/1", "transaction_id": r.id, "patch_id": r.patchID(), "author": m{"id": "7", "kind": "bot", "login": "ci"}, "tool": "semgrep",
		"findings": []any{m{"level": "error", "rule": "a.b", "file": "a", "line": 3, "message": "it is wrong"}},
	}
	for name, value := range doc {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	return all
}

// levels are findings of these levels.
func levels(all ...string) []any {
	out := []any{}
	for _, level := range all {
		out = append(out, m{"level": level})
	}
	return out
}

// adviceLife is a proposal that a tool speaks about.
func adviceLife(g *generator) {
	said := func(doc m) func(*record) {
		return func(r *record) { r.events = append(r.events, r.artifact("advice", adviceDoc(r, doc))) }
	}
	base := lifeOf(g.t, storetest.Asked).without("policy", "risks", "trace", "proposed_again").until("approval/request", 0)
	said(nil)(base)
	base.settle()
	c := g.life("E-51", "what a tool said of a change", base, m{"status": "proposed", "closed": false})
	many := strings.Fields(strings.Repeat("note ", 100))
	for note, doc := range inOrder(
		"another tool", m{"tool": "Code (QL) 2@x/y+z_", "version": "1.2.3"},
		"nothing was found", m{"findings": []any{}},
		"no list of findings", m{"findings": nil, "version": "1"},
		"findings of each level", m{"findings": levels("error", "warning", "warning", "note"), "more": 7},
		"a hundred findings", m{"findings": levels(many...)},
		"advice with extra", m{"extra": m{"weather": "rain"}},
	) {
		if doc["findings"] == nil && doc["version"] == "1" { // null is an empty list
			c.good("E-51 J-15", note, func(r *record) {
				all := adviceDoc(r, doc)
				all["findings"] = nil
				r.events = append(r.events, r.artifact("advice", all))
			})
			continue
		}
		c.good("E-51", note, said(doc))
	}
	finding := func(name string, value any) m {
		return m{"findings": []any{m{"level": "error", name: value}}}
	}
	for note, doc := range inOrder(
		"advice of another change", m{"patch_id": strings.Repeat("0", 64)},
		"advice in another transaction", m{"transaction_id": "tx_01KE5Q86Z943M4K0W7WAJYDRW9"},
		"by nobody", m{"author": m{"id": "", "kind": "user", "login": "x"}},
		"by somebody of no kind", m{"author": m{"id": "7", "kind": "", "login": "x"}},
		"of no tool", m{"tool": ""},
		"of a tool with a link", m{"tool": "[x]"},
		"of a tool with two spaces", m{"tool": "a  b"},
		"of a tool that ends in a space", m{"tool": "a "},
		"of a tool of 101 characters", m{"tool": strings.Repeat("a", 101)},
		"of a version of two lines", m{"version": "1\n2"},
		"of an empty version", m{"version": ""},
		"less than none left out", m{"more": -1},
		"none left out, and it says so", m{"more": 0},
		"findings in another order", m{"findings": levels("note", "error")},
		"101 findings", m{"findings": levels(append(many, "note")...)},
		"a level that is unknown", m{"findings": levels("fatal")},
		"a finding without a level", m{"findings": []any{m{"rule": "a"}}},
		"a line before the first", finding("line", -1),
		"a rule of 101 characters", finding("rule", strings.Repeat("a", 101)),
		"a message of 501 characters", finding("message", strings.Repeat("a", 501)),
		"a message of two lines", finding("message", "a\nb"),
		"a message that is turned around", finding("message", "a\u202eb"),
		"a file of 501 characters", finding("file", strings.Repeat("a", 501)),
		"an empty file", finding("file", ""),
		"a finding with a member more", finding("fix", "a"),
		"advice with a member more", m{"approved": true},
		"advice of another schema", m{"schema": "countersign/findings/1"},
		"without a tool", m{"tool": nil},
	) {
		c.bad("E-51", note, "L27", said(doc))
	}
	c.bad("E-51 V-9", "advice of a newer version", "NEWER", said(m{"needs_version": "1.1"}))
	g.in("advised")
	whole := lifeOf(g.t, storetest.Whole).without("risks").until("apply/start", 0)
	ruled := func(level string) func(*record) {
		return func(r *record) {
			r.policy(canonicalPolicy(`"sandbox"`, `"protected":[{"advice":{"level":"`+level+`","tool":"semgrep"},"required":1}],"sandbox"`))
		}
	}
	at := func(where, nth int, doc m) func(*record) {
		return func(r *record) {
			_, i := r.find("apply/start", nth)
			r.insert(i+where, r.artifact("advice", adviceDoc(r, doc)))
		}
	}
	both := func(all ...func(*record)) func(*record) {
		return func(r *record) {
			for _, one := range all {
				one(r)
			}
		}
	}
	o := g.life("E-38 Y-49", "an apply that nobody advised about", whole, m{"status": "proposed", "closed": false})
	o.good("E-38 Y-49", "a rule, and no advice", ruled("error"))
	o.good("E-38 Y-49", "advice, and no rule", at(0, 0, nil))
	o.bad("E-38 Y-49 D-20", "advice that asks for more, before an apply", "L17", both(ruled("error"), at(0, 0, nil)))
	o.good("E-38 Y-49 D-20", "advice that asks for more, after an apply", both(ruled("note"), at(1, 0, nil)))
	o.good("E-38 Y-49", "advice of another tool", both(ruled("error"), at(0, 0, m{"tool": "Semgrep"})))
	o.good("E-38 Y-49", "advice of a lesser level", both(ruled("error"), at(0, 0, m{"findings": levels("warning", "note")})))
	o.good("E-38 Y-49", "advice without findings", both(ruled("note"), at(0, 0, m{"findings": []any{}})))
	o.bad("E-38 Y-49", "a better result after a worse one", "L17", both(ruled("warning"), at(0, 0, nil), at(0, 0, m{"findings": []any{}})))
}

// advised are verdicts with what tools said.
func advised(d deciding, ada, bea vote) {
	protected := func(v vote) vote { v.prefix = "protected:"; return v }
	rule := func(more string) m {
		return policyOf(`"sandbox"`, `"protected":[{"advice":{"level":"warning","tool":"semgrep"},"required":1`+more+`}],"sandbox"`)
	}
	steps := func(all ...any) func(*record) {
		return func(r *record) {
			for _, one := range all {
				if v, is := one.(vote); is {
					r.votes(v)
				} else {
					r.events = append(r.events, r.artifact("advice", adviceDoc(r, one.(m))))
				}
			}
		}
	}
	said, late := m{}, m{"findings": levels("warning"), "version": "2"}
	d.decides("Y-49", "advice, and the change alone is approved", "pending", "1", steps(said, ada), rule(""))
	d.decides("Y-49 D-4", "advice, then both are approved", "approved", "11", steps(said, ada, protected(ada)), rule(""))
	d.decides("Y-49 D-4", "an approval of protected paths before the advice", "pending", "10", steps(ada, protected(ada), said), rule(""))
	d.decides("Y-49 D-4", "and once more after it", "approved", "101", steps(ada, protected(ada), said, protected(ada)), rule(""))
	early := protected(ada)
	early.source = m{"created_at": "2026-01-05T00:00:00Z"}
	d.decides("Y-49 D-4", "an approval made before the advice, and recorded after it", "pending", "10", steps(said, ada, early), rule(""))
	d.decides("Y-49 D-4", "the last of two pieces of advice asks", "pending", "10", steps(said, ada, protected(ada), late), rule(""))
	d.decides("Y-49", "advice that is better later", "pending", "1", steps(late, ada, m{"findings": []any{}}), rule(""))
	d.decides("Y-49", "advice below the level", "approved", "1", steps(m{"findings": levels("note")}, ada), rule(""))
	d.decides("Y-49", "advice of a tool that no rule names", "approved", "1", steps(m{"tool": "SEMGREP"}, ada), rule(""))
	d.decides("Y-49 D-11", "advice, and not by who is named", "pending", "10", steps(said, ada, protected(ada)), rule(`,"users":["bea"]`))
	d.decides("Y-49 D-11", "advice, and by who is named", "approved", "11", steps(said, ada, protected(bea)), rule(`,"users":["bea"]`))
	two := policyOf(`"sandbox"`, `"protected":[{"paths":["*"],"required":1},{"advice":{"level":"warning","tool":"semgrep"},"required":1}],"sandbox"`)
	d.decides("Y-46 Y-49", "a protected path, approved before the advice", "pending", "11", steps(ada, protected(ada), said), two)
	d.decides("Y-46 Y-49", "a protected path, and one approval after the advice", "approved", "11", steps(ada, said, protected(ada)), two)
	burns := ada
	burns.kind, burns.reason = "break_glass", "it burns"
	d.decides("Y-49 D-13", "a broken glass before the advice", "approved!", "1", steps(burns, said),
		policyOf(`"permission"`, `"break_glass":["ada"],"permission"`, `"sandbox"`, `"protected":[{"advice":{"level":"error","tool":"semgrep"},"required":1}],"sandbox"`))
}
