package conformance

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// Own is this program as a verifier.
type Own struct{}

// values are those of an answer that accepts.
type values = map[string]any

// A broken error refuses by rules.
type broken struct{ rules []string }

func (b *broken) Error() string { return strings.Join(b.rules, " ") }

// A questionError is an input that the question cannot have, which is no verdict.
type questionError struct{ err error }

func (e *questionError) Error() string { return "the question: " + e.err.Error() }

// Ask answers a question. The error is that of a question that cannot be read.
func (Own) Ask(q Question) (Answer, error) {
	a, _, err := answer(q)
	return a, err
}

// answer also returns all rules that are broken.
func answer(q Question) (Answer, []string, error) {
	of, ok := ops[q.Class+" "+q.Op]
	if !ok {
		return Answer{ID: q.ID, Verdict: Unsupported}, nil, nil
	}
	found, err := of(q.Input)
	var cannot *questionError
	var by *broken
	switch {
	case err == nil:
		if found == nil {
			found = values{}
		}
		return Answer{ID: q.ID, Verdict: Accept, Values: found}, nil, nil
	case errors.As(err, &cannot):
		return Answer{}, nil, err
	case errors.As(err, &by):
		return Answer{ID: q.ID, Verdict: Refuse, Rule: by.rules[0]}, by.rules, nil
	}
	return Answer{ID: q.ID, Verdict: Refuse}, nil, nil
}

// op reads the input of an operation.
func op[Input any](of func(Input) (values, error)) func(json.RawMessage) (values, error) {
	return func(raw json.RawMessage) (values, error) {
		var in Input
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&in); err != nil {
			return nil, &questionError{err}
		}
		return of(in)
	}
}

var ops = map[string]func(json.RawMessage) (values, error){
	"json document": op(jsonDocument),
	"json line":     op(jsonLine),
	"json id":       op(jsonID),

	"patch make":         op(patchMake),
	"patch read":         op(patchRead),
	"patch path":         op(patchPath),
	"patch paths":        op(patchPaths),
	"patch diff":         op(patchDiff),
	"patch fingerprints": op(patchFingerprints),

	"policy file":     op(policyFile),
	"policy document": op(policyDocument),
	"policy tighten":  op(policyTighten),
	"policy glob":     op(policyGlob),
	"policy owners":   op(policyOwners),
	"policy needs":    op(policyNeeds),

	"signature sshsig":    op(signatureSSHSIG),
	"signature line":      op(signatureLine),
	"signature statement": op(signatureStatement),
	"signature decision":  op(signatureDecision),

	"transaction check": op(transactionCheck),
	"transaction fold":  op(transactionFold),
	"verdict decide":    op(verdictDecide),

	"history bundle": op(historyBundle),
	"history audit":  op(historyAudit),
}

type documentInput struct {
	Document Bytes `json:"document"`
}

func jsonDocument(in documentInput) (values, error) {
	doc, err := canon.Parse(in.Document)
	if err != nil {
		return nil, err
	}
	text, err := canon.Marshal(doc)
	if err != nil {
		return nil, err
	}
	sum, err := document.Hash(doc)
	return values{"canonical": string(text), "sha256": sum}, err
}

func jsonLine(in struct {
	Line Bytes `json:"line"`
}) (values, error) {
	if !canon.IsLine(in.Line) {
		return nil, errors.New("no line")
	}
	return values{"sha256": canon.Hex(in.Line)}, nil
}

func jsonID(in struct {
	documentInput
	Prefix string `json:"prefix"`
}) (values, error) {
	doc, err := canon.Parse(in.Document)
	if err != nil {
		return nil, err
	}
	id, err := document.DeriveID(in.Prefix, doc)
	return values{"id": id}, err
}

// fs is the tree as the base of a patch, or as a directory of records.
func (t Tree) fs() (fstest.MapFS, error) {
	out := fstest.MapFS{}
	for name, file := range t {
		mode, err := strconv.ParseUint(file.Mode, 8, 32)
		if err != nil || len(file.Mode) != 6 {
			return nil, &questionError{fmt.Errorf("%+q is no mode", file.Mode)}
		}
		f := &fstest.MapFile{Data: file.Content, Mode: fs.FileMode(mode & 0o777)}
		switch mode >> 12 {
		case 0o04:
			f.Mode |= fs.ModeDir
		case 0o10:
		case 0o12:
			f.Mode |= fs.ModeSymlink
		default:
			f.Mode |= fs.ModeIrregular
		}
		out[string(name)] = f
	}
	return out, nil
}

func patchMake(in struct {
	Base  Tree `json:"base"`
	After Tree `json:"after"`
}) (values, error) {
	base, err := in.Base.fs()
	if err != nil {
		return nil, err
	}
	after := map[string]*patch.File{}
	for name := range in.Base {
		after[string(name)] = nil
	}
	for name, file := range in.After {
		f := &patch.File{Mode: patch.Regular, Data: file.Content}
		if f.Mode.String() != file.Mode {
			f.Mode = patch.Executable
		}
		if f.Mode.String() != file.Mode {
			return nil, errors.New("a patchset has no such mode")
		}
		after[string(name)] = f
	}
	p, err := patch.NewTree(base).Between(after)
	if err != nil {
		return nil, err
	}
	return values{"patch_id": p.ID(), "patch": Bytes(p.Bytes()), "files": filesOf(p)}, nil
}

var operations = map[patch.Kind]string{patch.Add: "add", patch.Delete: "delete", patch.Update: "update", patch.Rename: "rename"}

func filesOf(p patch.Patchset) []values {
	out := []values{}
	for _, c := range p.Changes {
		f := values{"path": c.Path, "operation": operations[c.Kind], "base_sha256": c.Before.Sum(), "after_sha256": c.After.Sum()}
		if c.Kind == patch.Rename {
			f["from"] = c.From
		}
		out = append(out, f)
	}
	return out
}

func patchRead(in struct {
	Patch Bytes `json:"patch"`
	Base  Tree  `json:"base"`
}) (values, error) {
	base, err := in.Base.fs()
	if err != nil {
		return nil, err
	}
	d, err := patch.Parse(in.Patch)
	if err != nil {
		return nil, err
	}
	p, err := code.Put(d, base)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(p.Bytes(), in.Patch) {
		return nil, errors.New("these are not its canonical bytes")
	}
	return values{"patch_id": p.ID(), "files": filesOf(p)}, nil
}

func patchPath(in struct {
	Path Path `json:"path"`
}) (values, error) {
	return nil, patch.CheckPath(string(in.Path))
}

// patchPaths adds all of the paths to an empty tree.
func patchPaths(in struct {
	Paths []Path `json:"paths"`
}) (values, error) {
	after := map[string]*patch.File{}
	for _, name := range in.Paths {
		after[string(name)] = &patch.File{Mode: patch.Regular}
	}
	_, err := patch.NewTree(fstest.MapFS{}).Between(after)
	return nil, err
}

func patchDiff(in struct {
	Before Bytes `json:"before"`
	After  Bytes `json:"after"`
}) (values, error) {
	file := func(data []byte) *patch.File { return &patch.File{Mode: patch.Regular, Data: data} }
	section := patch.Change{Kind: patch.Update, Path: "x", Before: file(in.Before), After: file(in.After)}.Bytes()
	_, body, changed := bytes.Cut(section, []byte("\n+++ b/x\n"))
	if !changed && !bytes.Equal(in.Before, in.After) {
		return nil, &questionError{errors.New("these are no texts")}
	}
	return values{"body": Bytes(body)}, nil
}

func patchFingerprints(in struct {
	PatchID string `json:"patch_id"`
}) (values, error) {
	if !canon.IsHex64(in.PatchID) {
		return nil, errors.New("no patch_id")
	}
	out := values{}
	for _, kind := range []string{policy.KindFileChange, policy.KindSecret, policy.KindProtected, policy.KindBreakGlass} {
		out[kind] = policy.Fingerprint(kind, in.PatchID)
	}
	return out, nil
}

type fileInput struct {
	File Bytes `json:"file"`
}

func policyFile(in fileInput) (values, error) {
	p, err := policy.Parse(policy.Path, in.File)
	return policyValues(p), err
}

func policyValues(p policy.Policy) values {
	return values{"policy": string(p.JSON()), "sha256": p.Sum()}
}

func policyDocument(in documentInput) (values, error) {
	p, err := policy.Decode(in.Document)
	return values{"sha256": p.Sum()}, err
}

func policyTighten(in struct {
	Default Bytes `json:"default"`
	Base    Bytes `json:"base"`
}) (values, error) {
	p, err1 := policy.Parse(policy.Path, in.Default)
	b, err2 := policy.Parse(policy.Path, in.Base)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return policyValues(policy.Tighten(p, b)), nil
}

func policyGlob(in struct {
	Glob string `json:"glob"`
	Path string `json:"path"`
}) (values, error) {
	g, err := policy.ParseGlob(in.Glob)
	if err != nil {
		return nil, err
	}
	return values{"matches": g.Match(in.Path)}, nil
}

func policyOwners(in struct {
	CodeOwners Bytes  `json:"codeowners"`
	Path       string `json:"path"`
}) (values, error) {
	c, err := forge.ParseOwners(in.CodeOwners)
	if err != nil {
		return nil, err
	}
	return values{"owners": append([]string{}, c.Of(in.Path)...)}, nil
}

func policyNeeds(in struct {
	fileInput
	Paths   []string `json:"paths"`
	Secrets bool     `json:"secrets"`
}) (values, error) {
	p, err := policy.Parse(policy.Path, in.File)
	if err != nil {
		return nil, err
	}
	return values{"needs": p.Needs(in.Paths, in.Secrets)}, nil
}

func signatureSSHSIG(in struct {
	Message   Bytes  `json:"message"`
	Signature Bytes  `json:"signature"`
	Namespace string `json:"namespace"`
}) (values, error) {
	fingerprint, err := sshsig.MadeWith(in.Namespace, in.Message, string(in.Signature))
	if err != nil {
		return nil, err
	}
	return values{"key_fingerprint": fingerprint, "key_type": keyType(string(in.Signature))}, nil
}

// keyType is the type of the key in a signature that is good.
func keyType(armored string) string {
	const before = len("SSHSIG") + 4 + 4 // and the length of the key
	lines := strings.Split(armored, "\n")
	raw, err := base64.StdEncoding.DecodeString(strings.Join(lines[1:len(lines)-2], ""))
	if err != nil || len(raw) < before+4 {
		return ""
	}
	n := int(raw[before+3]) // no type is longer than this says
	return string(raw[before+4 : min(len(raw), before+4+n)])
}

func signatureLine(in struct {
	Line string `json:"line"`
}) (values, error) {
	allowed, err := sshsig.ParseAllowedSigners([]byte(in.Line))
	if err != nil {
		return nil, err
	}
	lines := allowed.Lines()
	if len(lines) != 1 || strings.Contains(in.Line, "\n") {
		return nil, errors.New("not one line")
	}
	out := values{"principals": lines[0].Principals, "key_fingerprint": lines[0].Fingerprint}
	for name, at := range map[string]time.Time{"valid_after": lines[0].After, "valid_before": lines[0].Before} {
		if !at.IsZero() {
			out[name] = at.UTC().Format(time.RFC3339)
		}
	}
	return out, nil
}

func signatureStatement(in struct {
	Statement Bytes `json:"statement"`
}) (values, error) {
	s, err := approval.ParseDecision(in.Statement)
	return values{"decision": s.Decision, "decided_at": s.DecidedAt, "fingerprints": s.Fingerprints}, err
}

// signatureDecision asks for one principal, at the time of the statement and at that of the record.
func signatureDecision(in struct {
	Statement  Bytes     `json:"statement"`
	Signature  Bytes     `json:"signature"`
	Line       string    `json:"line"`
	Principal  string    `json:"principal"`
	RecordedAt time.Time `json:"recorded_at"`
	Hardware   bool      `json:"hardware"`
	PIN        bool      `json:"pin"`
	Passkeys   string    `json:"passkeys"`
}) (values, error) {
	s, err := approval.ParseDecision(in.Statement)
	if err != nil {
		return nil, err
	}
	decided, err := time.Parse(time.RFC3339, s.DecidedAt)
	if err != nil {
		return nil, err
	}
	allowed, err := sshsig.ParseAllowedSigners([]byte(in.Line))
	if err != nil {
		return nil, err
	}
	proof, err := allowed.Prove(approval.Namespace, in.Statement, string(in.Signature), []string{in.Principal}, decided, in.RecordedAt)
	if err == nil {
		err = approval.Keys{Hardware: in.Hardware, PIN: in.PIN, Passkeys: in.Passkeys}.Take(proof)
	}
	return values{"key_fingerprint": proof.Fingerprint}, err
}

// rulesOf are the rules of findings, but for that of views (U-7).
func rulesOf(found []canon.Violation) error {
	var rules []string
	for _, v := range found {
		if v.RuleID != "L23" {
			rules = append(rules, v.RuleID)
		}
	}
	if len(rules) == 0 {
		return nil
	}
	slices.Sort(rules)
	return &broken{slices.Compact(rules)}
}

func transactionCheck(in struct {
	ID    string `json:"id"`
	Files Tree   `json:"files"`
}) (values, error) {
	dir, err := in.Files.fs()
	if err != nil {
		return nil, err
	}
	log, found := ledger.ReadOwn(dir, in.ID)
	if log != nil {
		found = append(found, new(approval.Policies).Record(dir, log).Redo()...)
		found = append(found, observation.Check(dir, log)...)
	}
	if err := rulesOf(found); err != nil {
		return nil, err
	}
	tx := log.Transaction()
	approvals := [][]string{}
	for _, d := range ledger.Of[*ledger.ApprovalDecision](log) {
		if d.Decision == ledger.Approve {
			approvals = append(approvals, []string{d.Fingerprint, d.Source.Author.ID})
		}
	}
	return values{
		"status": tx.Status, "closed": tx.Closed, "patch_id": tx.PatchID(), "events": len(log.Events()), "approvals": approvals,
	}, nil
}

func transactionFold(in struct {
	Events Bytes `json:"events"`
}) (values, error) {
	log, err := ledger.ReadLog(in.Events)
	if err != nil {
		return nil, &broken{[]string{"L9"}} // ReadLog has one error for all that keeps events from folding
	}
	line, err := canon.Line(log.Transaction())
	return values{"transaction": json.RawMessage(line)}, err
}

// verdictDecide makes the case that approval.Policies makes of a record, of what the question says.
func verdictDecide(in struct {
	ID       string            `json:"id"`
	Files    Tree              `json:"files"`
	Policy   Bytes             `json:"policy"`
	Now      time.Time         `json:"now"`
	Head     string            `json:"head"`
	Standing json.RawMessage   `json:"standing"`
	Drift    json.RawMessage   `json:"drift"`
	Denials  []json.RawMessage `json:"denials"`
}) (values, error) {
	dir, err := in.Files.fs()
	if err != nil {
		return nil, err
	}
	log, found := ledger.ReadOwn(dir, in.ID)
	if err := rulesOf(found); err != nil {
		return nil, err
	}
	p, err := policy.Decode(in.Policy)
	proposed := log.Transaction().Pointers.Proposal
	if err != nil {
		return nil, err
	}
	if proposed == nil {
		return nil, errors.New("nothing is proposed")
	}
	said, err := approval.Advised(dir, log, len(log.Payloads()))
	if err != nil {
		return nil, err
	}
	c := approval.Case{
		Policy: p, Needs: p.Needs(proposed.TargetFiles, proposed.ContainsSecrets, said...), Log: log, Now: in.Now,
		PullRequest: proposed.PullRequest > 0, Authors: proposed.Authors, Party: approval.ReadParty(dir, log),
		Signed: new(approval.Policies).Record(dir, log).Signed(p), People: approval.People(dir, log, sshsig.Allowed{}),
	}
	for _, raw := range in.Denials {
		var d ledger.Denial
		if err := asRecorded(raw, &d); err != nil {
			return nil, err
		}
		c.Denials = append(c.Denials, d)
	}
	if in.Standing != nil {
		var s approval.Standing
		if err := asRecorded(in.Standing, &s); err != nil {
			return nil, err
		}
		c = c.On(s)
	}
	if in.Drift != nil {
		var doc approval.DriftDoc
		if err := asRecorded(in.Drift, &doc); err != nil {
			return nil, err
		}
		c.Drift = doc.Of
	}
	c.Head = in.Head
	return verdictValues(c.Decide()), nil
}

// asRecorded reads a document that is recorded as a line, and stands in a question in whatever form.
func asRecorded(raw []byte, v any) error {
	doc, err := canon.Parse(raw)
	if err != nil {
		return err
	}
	line, err := canon.Line(doc)
	if err != nil {
		return err
	}
	return canon.Unmarshal(line, v)
}

func verdictValues(v approval.Verdict) values {
	needs, counted := []values{}, []bool{}
	for _, n := range v.Needs {
		needs = append(needs, values{"kind": n.Kind, "fingerprint": n.Fingerprint, "required": n.Required, "approved": n.Approved})
	}
	for _, d := range v.Decisions {
		counted = append(counted, d.Counted)
	}
	return values{"verdict": v.State, "break_glass": v.BreakGlass, "needs": needs, "counted": counted}
}
