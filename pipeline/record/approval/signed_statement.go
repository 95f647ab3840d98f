package approval

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// Namespace is what the signatures are for. One that was made for anything else,
// such as a commit or a file, is no decision.
const Namespace = sshsig.ForDecisions

// BreakGlass is the decision of a statement that breaks the glass: whoever approves
// the change alone has not said that nobody else need.
const BreakGlass ledger.Decision = "break-glass"

// DecisionSchema is the schema of a SignedDecision.
const DecisionSchema = "countersign/decision/2"

// A SignedDecision is what a person signs: the decision, what it is about, and what was
// shown before. Repository is nil for a transaction that has none; PullRequest is
// then 0. DecidedAt is RFC 3339 in UTC, to the second. Shown is the "sha256:…" of
// the risks that were shown. Proposers are all who had proposed these bytes, and RequestedBy who
// had asked for them, as far as that is known: empty where it is not, and never left out. Policy is
// the one that asked for the decision, as the ledger's events name it.
type SignedDecision struct {
	Schema        string             `json:"schema"`
	Repository    *ledger.Repository `json:"repository,omitempty"`
	PullRequest   int                `json:"pull_request"`
	TransactionID string             `json:"transaction_id"`
	BaseCommit    string             `json:"base_commit"`
	Decision      ledger.Decision    `json:"decision"`
	Fingerprints  []string           `json:"fingerprints"`
	Reason        string             `json:"reason"`
	DecidedAt     string             `json:"decided_at"`
	Shown         string             `json:"shown"`
	Proposers     []ledger.Actor     `json:"proposers"`
	RequestedBy   []ledger.Requester `json:"requested_by"`
	Policy        ledger.PolicyRef   `json:"policy"`
	Extra         json.RawMessage    `json:"extra,omitempty"` // of a later version (package canon)
}

// Bytes are what is signed. It panics on a SignedDecision that has no such form, which
// Check refuses.
func (s SignedDecision) Bytes() []byte {
	line, err := canon.Line(s)
	if err != nil {
		panic("approval: " + err.Error())
	}
	return line
}

// Check says what a statement lacks. No member may be absent or empty, but for the
// reason, and repository and pull_request of a transaction that has none.
func (s SignedDecision) Check() error {
	at, err := time.Parse(time.RFC3339, s.DecidedAt)
	err = first([]broken{
		{s.Schema != DecisionSchema, "its schema is not " + DecisionSchema},
		{s.PullRequest < 0 || s.PullRequest > 0 && s.Repository == nil, "it names no repository of its pull request"},
		{s.Repository != nil && (s.Repository.ID == "" || s.Repository.Name == ""), "its repository has no number or no name"},
		{s.TransactionID == "" || s.BaseCommit == "", "it names no transaction, or no base"},
		{s.Decision != ledger.Approve && s.Decision != ledger.Deny && s.Decision != BreakGlass, "its decision is neither approve nor deny nor break-glass"},
		{len(s.Fingerprints) == 0 || !isSortedSet(s.Fingerprints, strings.Compare), "its fingerprints are missing, repeated or out of order"},
		{ledger.OneLine(s.Reason, maxReason) != s.Reason, "its reason is not one line of visible characters"},
		{err != nil || at.UTC().Format(time.RFC3339) != s.DecidedAt, "its time is not one of RFC 3339 in UTC, to the second"},
		{!canon.IsSum(s.Shown), "it does not say what was shown"},
		{len(s.Proposers) == 0 || !isSortedSet(s.Proposers, ledger.CompareActors), "who proposed it is missing, repeated or out of order"},
		{slices.ContainsFunc(s.Proposers, func(a ledger.Actor) bool { return a.Kind == "" || a.ID == "" }), "who proposed it has no kind or no id"},
		{s.RequestedBy == nil, "it does not say who asked for it, or that nobody is known to have"},
		{s.Policy.Commit == "" || !canon.IsSum(s.Policy.SHA256), "it does not name the Policy that asked for it"},
	})
	if err != nil {
		return err
	}
	if err := ledger.CheckRequesters(s.RequestedBy); err != nil {
		return fmt.Errorf("it %w", err)
	}
	if err := canon.CheckGrowth("it", s.Extra, ""); err != nil {
		return err
	}
	kind, id, _ := strings.Cut(s.Fingerprints[0], "patchset:")
	return first([]broken{
		{s.Decision == BreakGlass && (s.Reason == "" || len(s.Fingerprints) > 1 || kind != ""), "its break-glass has no reason, or covers more than the change"},
		{!canon.IsHex64(id) || !s.isOf(id), fmt.Sprintf("%.200q are not the fingerprints of one patch", s.Fingerprints)},
	})
}

// A broken rule, if it is.
type broken struct {
	is  bool
	why string
}

// first is the error of the first rule that is broken.
func first(rules []broken) error {
	if i := slices.IndexFunc(rules, func(r broken) bool { return r.is }); i >= 0 {
		return errors.New(rules[i].why)
	}
	return nil
}

const maxReason = 500

// isOf reports whether all fingerprints are, of any kind, of a patch.
func (s SignedDecision) isOf(patchID string) bool {
	return !slices.ContainsFunc(s.Fingerprints, func(f string) bool {
		kind, is := strings.CutSuffix(f, "patchset:"+patchID)
		return !is || kind != "" && kind != "secret:" && kind != "protected:"
	})
}

// isSortedSet reports whether each is there once and in order.
func isSortedSet[T any](all []T, compare func(a, b T) int) bool {
	for i := 1; i < len(all); i++ {
		if compare(all[i-1], all[i]) >= 0 {
			return false
		}
	}
	return true
}

// ParseDecision reads a SignedDecision. The bytes must be its Bytes, so that one decision has one
// text: what else could mean the same is refused.
func ParseDecision(raw []byte) (SignedDecision, error) {
	var s SignedDecision
	if err := canon.UnmarshalDocument("it", bytes.TrimSuffix(raw, []byte("\n")), &s); err != nil {
		return SignedDecision{}, fmt.Errorf("the statement is not of its form: %w", err)
	}
	if err := s.Check(); err != nil {
		return SignedDecision{}, fmt.Errorf("the statement is not of its form: %w", err)
	}
	if !bytes.Equal(s.Bytes(), raw) {
		return SignedDecision{}, errors.New("the statement is not in its canonical form, or has unknown members")
	}
	return s, nil
}

// A Signature is a SignedDecision with the text of its SSHSIG: as ssh-keygen writes it,
// with its first and last line.
type Signature struct {
	Statement SignedDecision
	Armored   string
}

// carried is how a Signature is written on one line.
type carried struct {
	Signature string          `json:"signature"`
	Statement json.RawMessage `json:"statement"`
}

// String writes a signature on one line, as it is pasted into a comment: base64url,
// without padding, of canonical JSON with the statement and the signature's base64.
func (s Signature) String() string {
	text := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(s.Armored, sshsig.Begin), sshsig.End), "\n", "")
	doc, err := canon.Marshal(carried{text, bytes.TrimSuffix(s.Statement.Bytes(), []byte("\n"))})
	if err != nil {
		panic("approval: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(doc)
}

// maxLine bounds the text of a signature: one of a large RSA key with a reason of
// every length has less.
const maxLine = 16 << 10

// ParseSignature reads what String writes, and nothing else. It does not verify.
func ParseSignature(text string) (Signature, error) {
	if len(text) > maxLine {
		return Signature{}, errors.New("the signature is too long")
	}
	doc, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return Signature{}, errors.New("the signature is not base64url: a part of it may be missing")
	}
	var c carried
	if err := canon.Unmarshal(doc, &c); err != nil {
		return Signature{}, fmt.Errorf("the signature is not of its form: %w", err)
	}
	statement, err := ParseDecision(append(c.Statement, '\n'))
	if err != nil {
		return Signature{}, err
	}
	s := Signature{Statement: statement, Armored: sshsig.Armor(c.Signature)}
	if s.String() != text {
		return Signature{}, errors.New("the signature is not in its canonical form, or has unknown members")
	}
	return s, nil
}

// The lines around a Block.
const (
	blockBegin = "```countersign-decision\n"
	blockEnd   = "```"
)

// Block writes a signature as a fenced block, as it is pasted into a comment: the
// SSHSIG as ssh-keygen writes it and the statement as it was signed, so that both can be
// read there and taken out for ssh-keygen -Y verify. Lines end with LF, but for the last.
func (s Signature) Block() string {
	return blockBegin + s.Armored + string(s.Statement.Bytes()) + blockEnd
}

// HasBlock reports whether a text seems to be meant to have a Block in it, right or wrong.
func HasBlock(text string) bool {
	return strings.Contains(text, strings.TrimSpace(blockBegin)) || strings.Contains(text, strings.TrimSpace(sshsig.Begin))
}

// ParseBlock reads what Block writes, and nothing else. It does not verify.
func ParseBlock(text string) (Signature, error) {
	if len(text) > maxLine {
		return Signature{}, errors.New("the signature is too long")
	}
	inside, begins := strings.CutPrefix(text, blockBegin+sshsig.Begin)
	inside, ends := strings.CutSuffix(inside, "\n"+blockEnd)
	encoded, statement, found := strings.Cut(inside, sshsig.End)
	if !begins || !ends || !found {
		return Signature{}, errors.New("the block is not one fence with a signature and a statement, and nothing around them")
	}
	encoded = strings.ReplaceAll(encoded, "\n", "")
	if _, err := base64.StdEncoding.Strict().DecodeString(encoded); err != nil {
		return Signature{}, errors.New("the block's signature is not base64: a part of it may be missing")
	}
	parsed, err := ParseDecision([]byte(statement + "\n"))
	if err != nil {
		return Signature{}, err
	}
	s := Signature{Statement: parsed, Armored: sshsig.Armor(encoded)}
	if s.Block() != text {
		return Signature{}, errors.New("the block is not in its canonical form")
	}
	return s, nil
}
