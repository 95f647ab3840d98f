package proposal

import (
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/lazyregexp"
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
	p := fieldsOf(doc)
	if id := p.id(); proposalID().MatchString(id) {
		rest := maps.Clone(p)
		delete(rest, "id")
		v.derived("Proposal", "", id, "prop", rest)
	}
	if id, ok := p["source_bundle_id"].(string); ok && canon.Trim(id) != "" && !bundleID().MatchString(id) {
		v.Add("ID5", "", "source_bundle_id does not match pattern bun_{hash16} or bundle_{hash16}: %s", id)
	}
	if hash, ok := p["source_bundle_hash"].(string); ok && s.HasBundle {
		want, err := Hash(s.Bundle)
		if err != nil {
			v.Add("ID4", "", "bundle cannot be hashed: %v", err)
		} else if hash != want {
			v.Add("ID4", "", "source_bundle_hash does not match bundle %s: %s", want, hash)
		}
	}
	names := map[string]bool{} // what a validate or test action may have as its target
	for _, command := range s.Commands {
		names[command] = true
	}
	tests, _ := p["acceptance_tests"].([]any)
	for _, item := range tests {
		if id, ok := fieldsOf(item)["id"].(string); ok {
			names[id] = true
		}
	}
	actions, _ := p["actions"].([]any)
	for _, item := range actions {
		if a := fieldsOf(item); a != nil {
			v.missing(a, "Action", actionFields)
			v.strictAction(a, names)
		}
	}
	for _, item := range tests {
		if t := fieldsOf(item); t != nil {
			v.missing(t, "Test", testFields)
			if t["id"] == "" { // a reviewer is shown each test by its id
				v.Add("SCHEMA", "", "Test id must be non-empty")
			}
		}
	}
	return v.Sorted()
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
		hashed := fields{}
		for _, name := range []string{"type", "target", "content"} {
			if value, present := a[name]; present {
				hashed[name] = value
			}
		}
		v.derived("Action", id, id, "act", hashed)
	}
	content, isText := a["content"].(string)
	if !utf8.ValidString(content) || strings.Contains(content, "\x00") {
		v.Add("ID2", a.id(), "content is not valid UTF-8 or contains null bytes")
	}
	if hash, ok := a["expected_hash"].(string); ok && isText {
		bare, err := canon.Hash(content)
		if hash != canon.Sum([]byte(content)) && (err != nil || hash != bare) {
			v.Add("ID3", a.id(), "expected_hash does not match content: %s", hash)
		}
	} else if ok && a["content"] == nil {
		v.Add("ID3", a.id(), "expected_hash has no content to match: %s", hash)
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
