// Package signed is about decisions that a person signs with a key of their own, so
// that nobody who merely holds their account or their shell can make them. It is
// pure: keys, signatures and the time come from the caller.
//
// What is signed is a Statement, in the namespace of Namespace, as
// `ssh-keygen -Y sign` signs a file (OpenSSH's PROTOCOL.sshsig). Its bytes are
// canonical JSON (RFC 8785) and one LF:
//
//	{"base_commit":"…","decided_at":"2026-01-05T12:00:00Z","decision":"approve","fingerprints":["patchset:…"],"policy":{"commit":"…","sha256":"sha256:…"},"proposers":[{"id":"41898282","kind":"bot","login":"github-actions[bot]"}],"pull_request":12,"reason":"","repository":{"id":"1296269","name":"acme/shop"},"requested_by":[{"actor":{"id":"100","kind":"user","login":"bob"},"source":"actions.sender"}],"schema":"countersign/decision/2","shown":"sha256:…","transaction_id":"tx_…"}
//
// docs/decisions.md has each member.
package signed

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/format"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// Namespace is what the signatures are for. One that was made for anything else,
// such as a commit or a file, is no decision.
const Namespace = "countersign-decision@v2"

// BreakGlass is the decision of a statement that breaks the glass: whoever approves
// the change alone has not said that nobody else need.
const BreakGlass ledger.Decision = "break-glass"

// Schema is the schema of a Statement.
const Schema = "countersign/decision/2"

// A Statement is what a person signs: the decision, what it is about, and what was
// shown before. Repository is nil for a transaction that has none; PullRequest is
// then 0. DecidedAt is RFC 3339 in UTC, to the second. Shown is the "sha256:…" of
// the risks that were shown. Proposers are all who had proposed these bytes, and RequestedBy who
// had asked for them, as far as that is known: empty where it is not, and never left out. Policy is
// the one that asked for the decision, as the ledger's events name it.
type Statement struct {
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
	Extra         json.RawMessage    `json:"extra,omitempty"` // of a later version (package format)
}

// Bytes are what is signed. It panics on a Statement that has no such form, which
// Check refuses.
func (s Statement) Bytes() []byte {
	line, err := canon.Line(s)
	if err != nil {
		panic("signed: " + err.Error())
	}
	return line
}

// Check says what a statement lacks. No member may be absent or empty, but for the
// reason, and repository and pull_request of a transaction that has none.
func (s Statement) Check() error {
	at, err := time.Parse(time.RFC3339, s.DecidedAt)
	switch {
	case s.Schema != Schema:
		return fmt.Errorf("its schema is not %s", Schema)
	case s.PullRequest < 0, s.PullRequest > 0 && s.Repository == nil:
		return errors.New("it names no repository of its pull request")
	case s.Repository != nil && (s.Repository.ID == "" || s.Repository.Name == ""):
		return errors.New("its repository has no number or no name")
	case s.TransactionID == "" || s.BaseCommit == "":
		return errors.New("it names no transaction, or no base")
	case !slices.Contains([]ledger.Decision{ledger.Approve, ledger.Deny, BreakGlass}, s.Decision):
		return errors.New("its decision is neither approve nor deny nor break-glass")
	case len(s.Fingerprints) == 0 || !slices.IsSorted(s.Fingerprints) || len(slices.Compact(slices.Clone(s.Fingerprints))) != len(s.Fingerprints):
		return errors.New("its fingerprints are missing, repeated or out of order")
	case ledger.OneLine(s.Reason, maxReason) != s.Reason:
		return errors.New("its reason is not one line of visible characters")
	case err != nil || at.UTC().Format(time.RFC3339) != s.DecidedAt:
		return errors.New("its time is not one of RFC 3339 in UTC, to the second")
	case !canon.IsSum(s.Shown):
		return errors.New("it does not say what was shown")
	case len(s.Proposers) == 0 || !inOrder(s.Proposers):
		return errors.New("who proposed it is missing, repeated or out of order")
	case s.RequestedBy == nil:
		return errors.New("it does not say who asked for it, or that nobody is known to have")
	case s.Policy.Commit == "" || !canon.IsSum(s.Policy.SHA256):
		return errors.New("it does not name the Policy that asked for it")
	}
	if err := ledger.CheckRequesters(s.RequestedBy); err != nil {
		return fmt.Errorf("it %w", err)
	}
	if s.Decision == BreakGlass && (s.Reason == "" || len(s.Fingerprints) > 1 || !strings.HasPrefix(s.Fingerprints[0], "patchset:")) {
		return errors.New("its break-glass has no reason, or covers more than the change")
	}
	if err := format.CheckGrowth("it", s.Extra, ""); err != nil {
		return err
	}
	_, id, _ := strings.Cut(s.Fingerprints[0], "patchset:")
	if !canon.IsHex64(id) || slices.ContainsFunc(s.Fingerprints, func(f string) bool { return !isFingerprint(f, id) }) {
		return fmt.Errorf("%.200q are not the fingerprints of one patch", s.Fingerprints)
	}
	return nil
}

const maxReason = 500

// isFingerprint reports whether a text is a fingerprint, of any kind, of a patch.
func isFingerprint(f, patchID string) bool {
	kind, is := strings.CutSuffix(f, "patchset:"+patchID)
	return is && slices.Contains([]string{"", "secret:", "protected:"}, kind)
}

// inOrder reports whether proposers are those of a statement: each of a kind and with an id, once and in order.
func inOrder(all []ledger.Actor) bool {
	named := !slices.ContainsFunc(all, func(a ledger.Actor) bool { return a.Kind == "" || a.ID == "" })
	return named && slices.IsSortedFunc(all, ledger.CompareActors) && len(slices.Compact(slices.Clone(all))) == len(all)
}

// Parse reads a Statement. The bytes must be its Bytes, so that one decision has one
// text: what else could mean the same is refused.
func Parse(raw []byte) (Statement, error) {
	var s Statement
	if err := format.Unmarshal("it", bytes.TrimSuffix(raw, []byte("\n")), &s); err != nil {
		return Statement{}, fmt.Errorf("the statement is not of its form: %w", err)
	}
	if err := s.Check(); err != nil {
		return Statement{}, fmt.Errorf("the statement is not of its form: %w", err)
	}
	if !bytes.Equal(s.Bytes(), raw) {
		return Statement{}, errors.New("the statement is not in its canonical form, or has unknown members")
	}
	return s, nil
}

// A Signature is a Statement with the text of its SSHSIG: as ssh-keygen writes it,
// with its first and last line.
type Signature struct {
	Statement Statement
	Armored   string
}

// The lines around a signature's base64.
const (
	armorBegin = "-----BEGIN SSH SIGNATURE-----\n"
	armorEnd   = "-----END SSH SIGNATURE-----\n"
)

// carried is how a Signature is written on one line.
type carried struct {
	Signature string    `json:"signature"`
	Statement Statement `json:"statement"`
}

// unmarshalCarried reads it, having looked whether its statement is of a later version.
func unmarshalCarried(doc []byte, c *carried) error {
	var loose struct {
		Signature string          `json:"signature"`
		Statement json.RawMessage `json:"statement"`
	}
	if canon.Unmarshal(doc, &loose) == nil {
		var s Statement
		if err := format.Unmarshal("it", loose.Statement, &s); err != nil {
			return err
		}
	}
	return canon.Unmarshal(doc, c)
}

// String writes a signature on one line, as it is pasted into a comment: base64url,
// without padding, of canonical JSON with the statement and the signature's base64.
func (s Signature) String() string {
	text := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(s.Armored, armorBegin), armorEnd), "\n", "")
	doc, err := canon.Marshal(carried{text, s.Statement})
	if err != nil {
		panic("signed: " + err.Error())
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
	if err := unmarshalCarried(doc, &c); err != nil {
		return Signature{}, fmt.Errorf("the signature is not of its form: %w", err)
	}
	if err := c.Statement.Check(); err != nil {
		return Signature{}, fmt.Errorf("the statement is not of its form: %w", err)
	}
	s := Signature{Statement: c.Statement, Armored: armor(c.Signature)}
	if s.String() != text {
		return Signature{}, errors.New("the signature is not in its canonical form, or has unknown members")
	}
	return s, nil
}

// armor breaks base64 into the lines of a signature's text.
func armor(text string) string {
	var b strings.Builder
	b.WriteString(armorBegin)
	for line := range slices.Chunk([]byte(text), 70) {
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteString(armorEnd)
	return b.String()
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
	return strings.Contains(text, strings.TrimSpace(blockBegin)) || strings.Contains(text, strings.TrimSpace(armorBegin))
}

// ParseBlock reads what Block writes, and nothing else. It does not verify.
func ParseBlock(text string) (Signature, error) {
	if len(text) > maxLine {
		return Signature{}, errors.New("the signature is too long")
	}
	inside, begins := strings.CutPrefix(text, blockBegin+armorBegin)
	inside, ends := strings.CutSuffix(inside, "\n"+blockEnd)
	encoded, statement, found := strings.Cut(inside, armorEnd)
	if !begins || !ends || !found {
		return Signature{}, errors.New("the block is not one fence with a signature and a statement, and nothing around them")
	}
	encoded = strings.ReplaceAll(encoded, "\n", "")
	if _, err := base64.StdEncoding.Strict().DecodeString(encoded); err != nil {
		return Signature{}, errors.New("the block's signature is not base64: a part of it may be missing")
	}
	parsed, err := Parse([]byte(statement + "\n"))
	if err != nil {
		return Signature{}, err
	}
	s := Signature{Statement: parsed, Armored: armor(encoded)}
	if s.Block() != text {
		return Signature{}, errors.New("the block is not in its canonical form")
	}
	return s, nil
}
