package document

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// The types of an action (PROPOSAL_INTERNAL_SPEC 3.5).
const (
	CreateFile     = "create_file"
	ModifyFile     = "modify_file"
	DeleteFile     = "delete_file"
	ExecuteCommand = "execute_command"
	Validate       = "validate"
	RunTest        = "test"
)

// The types of an acceptance test (PROPOSAL_INTERNAL_SPEC 3.6).
const (
	HashMatch      = "hash_match"
	CommandSuccess = "command_success"
	FileExists     = "file_exists"
	ContentMatch   = "content_match"
)

// A Proposal is the actions that an agent asks to carry out, and the tests they must pass
// (PROPOSAL_INTERNAL_SPEC).
//
// # Format
//
// A Proposal is one JSON object; unknown keys are allowed everywhere.
//
//	id                  string   prop_ and the first 16 hex of its hash without id
//	schema_version      string   not blank
//	source_bundle_id    string   not blank
//	source_bundle_hash  string   "sha256:" and the bundle's canonicalHash
//	actions             array    sorted by order, then id
//	acceptance_tests    array    sorted by id
//	summary             string   not blank
//	requires_approval   boolean
//	confidence          number   an integer from 0 to 100
//
// An action is {id, type, target, content?, expected_hash?, required,
// description, order}; a test is {id, name, type, target, expected, required}.
// For example
//
//	{"acceptance_tests":[],
//	 "actions":[{"content":"hello\n","description":"Say hello.",
//	   "id":"act_cd8da12f774313b8","order":0,"required":true,
//	   "target":"hello.txt","type":"create_file"}],
//	 "confidence":90,"id":"prop_bc4cd7dd71f288f2","requires_approval":true,
//	 "schema_version":"1.0.0","source_bundle_hash":
//	   "sha256:d7c0d128c186bb3ec7961400a98115fea6bd8b15aaee60ddc78d68c56012b1ee",
//	 "source_bundle_id":"bun_0123456789abcdef","summary":"Add a greeting."}
//
// # Rules
//
// VerifyProposal reports, with the action's or test's id as the path where it has one:
//
//	SCHEMA  Proposal must be a non-null object · Missing proposal id field ·
//	        Proposal id must be string, got {type} ·
//	        Proposal ID does not match pattern prop_{hash16}: {id} ·
//	        Missing acceptance_tests field · acceptance_tests must be array, got {type} ·
//	        Missing requires_approval field · requires_approval must be boolean, got {type} ·
//	        Action must be a non-null object · Test must be a non-null object ·
//	        Action missing order field · {field} must be {type}, got {type}, in an action or a test
//	PR1     Missing schema_version field · schema_version must be string, got {type} ·
//	        schema_version must be non-empty
//	PR2     the same of source_bundle_id · Missing source_bundle_hash field ·
//	        source_bundle_hash must be string, got {type} ·
//	        source_bundle_hash must start with "sha256:"
//	PR3     Missing actions field · actions must be array, got {type}
//	PR4     Duplicate action ID: {id}
//	PR5     Action missing type field · Invalid action type: {value}
//	PR6     Action missing id field · Action ID does not match pattern act_{hash16}: {id}
//	PR7     Duplicate test ID: {id}
//	PR8     Test missing type field · Invalid test type: {value}
//	PR9     Missing confidence field · confidence must be number, got {type} ·
//	        confidence must be integer, got {value} · confidence must be 0-100, got {value}
//	PR10    Missing summary field · summary must be string, got {type} · summary must be non-empty
//	PR11    Actions not sorted by order: {a} (order=x) before {b} (order=y) ·
//	        Actions with same order not sorted by id: {a} before {b} ·
//	        Tests not sorted by id: {a} before {b}; the first offence, at b
//	PR12    {action type} action must have content · delete_file action must not have content
//
// A null field is a missing one, except that an action to delete a file must
// not have even a null content. Where an object must be, an array is none, and
// nothing is reported of its fields. An action whose order is no number is
// compared with none. {type} is ECMAScript's typeof word.
//
// The reference does not look for the other fields that an action and a test
// must have, and neither does VerifyProposal. VerifyStrict does, and adds rules of our own:
//
//	SCHEMA  Action missing {field} field, of target, required and description ·
//	        Test missing {field} field, of id, name, target, expected and required ·
//	        Test id must be non-empty
//	ID1  Proposal ID does not match derived id {id}: {id} ·
//	     Action ID does not match derived id {id}: {id}, which is act_ and the
//	     first 16 hex of the hash of {type, target, content}, content if present
//	ID2  content is not valid UTF-8 or contains null bytes
//	ID3  expected_hash does not match content: {hash}, which is "sha256:" and the
//	     hash of the content's bytes, or the bare canonicalHash of the content ·
//	     expected_hash has no content to match: {hash}
//	ID4  source_bundle_hash does not match bundle sha256:{hash}: {hash}
//	ID5  source_bundle_id does not match pattern bun_{hash16} or bundle_{hash16}: {id}
//	ID6  {action type} action names no acceptance test or allowed command: {target}
type Proposal struct {
	ID               string
	Actions          []Action // sorted by order, then id
	AcceptanceTests  []Test   // sorted by id
	Summary          string
	RequiresApproval bool
	Confidence       int // 0 to 100
}

// An Action is one thing to do (PROPOSAL_INTERNAL_SPEC 3.3).
type Action struct {
	ID          string
	Type        string  // one of the constants
	Target      string  // a path, a command, or the name of a test
	Content     *string // nil where there is none
	Required    bool
	Description string
}

// A Test is a condition that must hold after the actions
// (PROPOSAL_INTERNAL_SPEC 3.4).
type Test struct {
	ID       string
	Name     string
	Type     string // one of the constants
	Target   string
	Expected string
	Required bool
}

// Hash is canonicalHash: the bare hex SHA-256 of v's canonical JSON and one LF.
func Hash(v any) (string, error) {
	b, err := canon.Line(v)
	if err != nil {
		return "", err
	}
	return canon.Hex(b), nil
}

// DeriveID is deriveId (PROPOSAL_INTERNAL_SPEC 4.3): prefix, "_" and the first
// 16 hex of Hash.
func DeriveID(prefix string, v any) (string, error) {
	h, err := Hash(v)
	if err != nil {
		return "", err
	}
	return prefix + "_" + h[:16], nil
}

// HashProposal is the proposal_hash of a parsed document: "sha256:" and its
// canonicalHash. It fails on what is not a parsed document.
func HashProposal(doc any) (string, error) {
	h, err := Hash(doc)
	if err != nil {
		return "", err
	}
	return "sha256:" + h, nil
}

// Files are the actions that create, modify or delete a file, in order.
func (p Proposal) Files() []Action { return p.having(CreateFile, ModifyFile, DeleteFile) }

// Commands are the actions that run their target as a command, in order.
func (p Proposal) Commands() []Action { return p.having(ExecuteCommand) }

// Checks are the actions whose target names an acceptance test or a command of
// the Policy, in order.
func (p Proposal) Checks() []Action { return p.having(Validate, RunTest) }

func (p Proposal) having(types ...string) []Action {
	var out []Action
	for _, a := range p.Actions {
		if slices.Contains(types, a.Type) {
			out = append(out, a)
		}
	}
	return out
}

// ReadProposal reads a parsed document, unless VerifyStrict finds something in it.
func ReadProposal(doc any, s Strict) (p Proposal, found []canon.Violation) {
	if found = VerifyStrict(doc, s); len(found) > 0 {
		return p, found
	}
	of := fieldsOf(doc)
	confidence, _ := of["confidence"].(float64)
	p = Proposal{ID: of.id(), Summary: of.text("summary"), Confidence: int(confidence)}
	p.RequiresApproval, _ = of["requires_approval"].(bool)
	for _, a := range of.list("actions") {
		one := Action{ID: a.id(), Type: a.text("type"), Target: a.text("target"), Description: a.text("description")}
		one.Required, _ = a["required"].(bool)
		if content, has := a["content"].(string); has {
			one.Content = &content
		}
		p.Actions = append(p.Actions, one)
	}
	for _, t := range of.list("acceptance_tests") {
		one := Test{ID: t.id(), Name: t.text("name"), Type: t.text("type"), Target: t.text("target"), Expected: t.text("expected")}
		one.Required, _ = t["required"].(bool)
		p.AcceptanceTests = append(p.AcceptanceTests, one)
	}
	return p, nil
}

var bundleID = canon.Regexp(`^(bun|bundle)_[a-f0-9]{16}$`)

// Strict is what VerifyStrict needs to know besides the document.
type Strict struct {
	Bundle    any      // the source bundle as a parsed document
	HasBundle bool     // false skips ID4
	Commands  []string // the commands that the Policy allows, as an action's target writes them
}

// VerifyStrict is VerifyProposal, every missing field of PROPOSAL_INTERNAL_SPEC 3.3 and
// 3.4, and the rules ID1 to ID6, listed at [Proposal]. A field that
// breaks a rule of VerifyProposal by its shape is not reported again.
func VerifyStrict(doc any, s Strict) []canon.Violation {
	v := verifier{}
	v.proposal(doc)
	p := fieldsOf(doc)
	if id := p.id(); proposalID().MatchString(id) {
		rest := maps.Clone(p)
		delete(rest, "id")
		v.derived("Proposal", "", id, "prop", rest)
	}
	if id, ok := p["source_bundle_id"].(string); ok && Trim(id) != "" && !bundleID().MatchString(id) {
		v.Add("ID5", "", "source_bundle_id does not match pattern bun_{hash16} or bundle_{hash16}: %s", id)
	}
	if hash, ok := p["source_bundle_hash"].(string); ok && s.HasBundle {
		want, err := HashProposal(s.Bundle)
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
	for _, t := range p.list("acceptance_tests") {
		v.missing(t, "Test", testFields)
		if t["id"] == "" { // a reviewer is shown each test by its id
			v.Add("SCHEMA", "", "Test id must be non-empty")
		}
		if id, ok := t["id"].(string); ok {
			names[id] = true
		}
	}
	for _, a := range p.list("actions") {
		v.missing(a, "Action", actionFields)
		v.strictAction(a, names)
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
		bare, err := Hash(content)
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
	want, err := DeriveID(prefix, map[string]any(content))
	if err != nil {
		v.Add("ID1", path, "%s ID cannot be derived: %v", what, err)
	} else if id != want {
		v.Add("ID1", path, "%s ID does not match derived id %s: %s", what, want, id)
	}
}
