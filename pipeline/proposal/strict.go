package proposal

import (
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

var bundleID = lazyregexp.New(`^(bun|bundle)_[a-f0-9]{16}$`)

// Strict is what VerifyStrict needs to know besides the document.
type Strict struct {
	Bundle    any      // the source bundle as a parsed document
	HasBundle bool     // false skips ID4
	Commands  []string // the commands that the Policy allows, as an action's target writes them
}

// VerifyStrict is Verify, every missing field of PROPOSAL_INTERNAL_SPEC 3.3 and
// 3.4, and the rules ID1 to ID6, listed in the package comment. A field that
// breaks a rule of Verify by its shape is not reported again.
func VerifyStrict(doc any, s Strict) []rule.Violation {
	v := verifier{}
	v.proposal(doc)
	v.strict(fieldsOf(doc), s)
	return v.Sorted()
}

func (v *verifier) strict(p fields, s Strict) {
	if id := p.id(); proposalID().MatchString(id) {
		v.derived("Proposal", "", id, "prop", p.without("id"))
	}
	if id, ok := p["source_bundle_id"].(string); ok && canon.Trim(id) != "" && !bundleID().MatchString(id) {
		v.Add("ID5", "", "source_bundle_id does not match pattern bun_{hash16} or bundle_{hash16}: %s", id)
	}
	if hash, ok := p["source_bundle_hash"].(string); ok && s.HasBundle {
		v.bundle(hash, s.Bundle)
	}
	names := namesOf(p, s.Commands)
	actions, _ := p["actions"].([]any)
	for _, item := range actions {
		if a := fieldsOf(item); a != nil {
			v.missing(a, "Action", actionFields)
			v.strictAction(a, names)
		}
	}
	tests, _ := p["acceptance_tests"].([]any)
	for _, item := range tests {
		if t := fieldsOf(item); t != nil {
			v.missing(t, "Test", testFields)
			if t["id"] == "" { // a reviewer is shown each test by its id
				v.Add("SCHEMA", "", "Test id must be non-empty")
			}
		}
	}
}

// missing reports needed fields that are not there: a test without "required"
// would otherwise be one that may fail.
func (v *verifier) missing(f fields, what string, want []typed) {
	for _, t := range want {
		if t.needed && f[t.name] == nil {
			v.Add("SCHEMA", f.id(), "%s missing %s field", what, t.name)
		}
	}
}

func (v *verifier) strictAction(a fields, names map[string]bool) {
	if id := a.id(); actionID().MatchString(id) {
		v.derived("Action", id, id, "act", a.only("type", "target", "content"))
	}
	content, _ := a["content"].(string)
	if !utf8.ValidString(content) || strings.Contains(content, "\x00") {
		v.Add("ID2", a.id(), "content is not valid UTF-8 or contains null bytes")
	}
	if hash, ok := a["expected_hash"].(string); ok {
		v.expectedHash(a, hash)
	}
	target, ok := a["target"].(string)
	if t := a["type"]; (t == Validate || t == RunTest) && (!ok || !names[target]) {
		v.Add("ID6", a.id(), "%s action names no acceptance test or allowed command: %s", t, a.text("target"))
	}
}

// derived checks an id against the one that the content gives.
func (v *verifier) derived(what, path, id, prefix string, content fields) {
	want, err := canon.DeriveID(prefix, map[string]any(content))
	if err != nil {
		v.Add("ID1", path, "%s ID cannot be derived: %v", what, err)
	} else if id != want {
		v.Add("ID1", path, "%s ID does not match derived id %s: %s", what, want, id)
	}
}

func (v *verifier) bundle(hash string, bundle any) {
	want, err := Hash(bundle)
	if err != nil {
		v.Add("ID4", "", "bundle cannot be hashed: %v", err)
	} else if hash != want {
		v.Add("ID4", "", "source_bundle_hash does not match bundle %s: %s", want, hash)
	}
}

func (v *verifier) expectedHash(a fields, hash string) {
	switch content := a["content"].(type) {
	case nil:
		v.Add("ID3", a.id(), "expected_hash has no content to match: %s", hash)
	case string:
		bare, err := canon.Hash(content)
		if hash != canon.Sum([]byte(content)) && (err != nil || hash != bare) {
			v.Add("ID3", a.id(), "expected_hash does not match content: %s", hash)
		}
	}
}

// namesOf are the names that a validate or test action may have as its target.
func namesOf(p fields, commands []string) map[string]bool {
	names := make(map[string]bool)
	for _, command := range commands {
		names[command] = true
	}
	tests, _ := p["acceptance_tests"].([]any)
	for _, item := range tests {
		if id, ok := fieldsOf(item)["id"].(string); ok {
			names[id] = true
		}
	}
	return names
}

// without and only copy some of the fields.
func (f fields) without(name string) fields {
	out := make(fields, len(f))
	for k, v := range f {
		if k != name {
			out[k] = v
		}
	}
	return out
}

func (f fields) only(names ...string) fields {
	out := make(fields, len(names))
	for _, name := range names {
		if v, present := f[name]; present {
			out[name] = v
		}
	}
	return out
}
