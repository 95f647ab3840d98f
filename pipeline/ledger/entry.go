package ledger

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/canon"
)

// An Entry is one commit of the ledger: the files it adds or, for
// transaction.json and events.jsonl, replaces. Paths are from the ledger's root.
type Entry struct {
	Message string
	When    time.Time
	Files   map[string][]byte
}

// A Stage collects what one stage records about one transaction: events, and
// the files they name. Errors are kept until Entry, so that a stage reads as a
// list of what happened.
type Stage struct {
	Log   *Log
	now   time.Time
	files map[string][]byte
	err   error
}

// NewStage begins a stage on a log, which it will extend.
func NewStage(log *Log, now time.Time) *Stage {
	return &Stage{Log: log, now: now, files: map[string][]byte{}}
}

// Event records one event.
func (s *Stage) Event(p Payload) {
	if s.err == nil {
		s.err = s.Log.Append(s.now, p)
	}
}

// Status records a move to another status.
func (s *Stage) Status(to Status, reason string) {
	t := s.Log.Transaction()
	s.Event(&StatusChange{TransactionID: t.TransactionID, From: t.Status, To: to, Reason: reason})
}

// Close records the end of the transaction in its present status.
func (s *Stage) Close() {
	t := s.Log.Transaction()
	s.Event(&Close{TransactionID: t.TransactionID, Status: t.Status})
}

// File adds a file to the transaction's directory.
func (s *Stage) File(name string, data []byte) {
	s.files[path.Join(Dir(s.Log.Transaction().TransactionID), name)] = data
}

// Artifact stores a JSON document as evidence, records that, and returns the
// artifact's path in the transaction directory.
func (s *Stage) Artifact(kind string, doc any) string {
	data, err := canon.Line(doc)
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("artifact %s: %w", kind, err)
	}
	id := canon.Hex(data)
	s.File(ArtifactFile(id), data)
	s.Event(&ArtifactStored{
		TransactionID: s.Log.Transaction().TransactionID, ArtifactID: id, Kind: kind, Path: ArtifactFile(id),
		ContentType: "application/json", StoredSHA256: canon.Sum(data),
	})
	return ArtifactFile(id)
}

// Denied adds a denial to the index that later transactions are checked
// against.
func (s *Stage) Denied(d Denial) {
	data, err := canon.Line(d)
	if err != nil && s.err == nil {
		s.err = err
	}
	_, patchID, _ := strings.Cut(d.Fingerprint, ":")
	s.files[path.Join(DeniedDir(patchID), d.Kind+".json")] = data
}

// Proposed adds the transaction to the index of what proposes a patch.
func (s *Stage) Proposed(patchID string) {
	tx := s.Log.Transaction()
	data, err := canon.Line(Listed{s.Log.Meta().BaseCommit, tx.TransactionID})
	if err != nil && s.err == nil {
		s.err = err
	}
	s.files[path.Join(ProposedDir(patchID), tx.TransactionID+".json")] = data
}

// A Title is what a commit of the ledger says about its stage. Subject is one
// line; it may hold foreign text, which is made printable.
type Title struct{ Stage, Outcome, Subject string }

// Entry ends the stage. first says that the ledger is empty so far.
func (s *Stage) Entry(t Title, first bool) (*Entry, error) {
	if s.err != nil {
		return nil, fmt.Errorf("recording %s: %w", t.Stage, s.err)
	}
	tx := s.Log.Transaction()
	state, err := canon.Line(tx)
	if err != nil {
		return nil, err
	}
	s.File(TransactionFile, state)
	s.File(EventsFile, s.Log.Bytes())
	if first {
		s.files[ReadmeFile] = []byte(readme)
		s.files[SchemaFile] = fmt.Appendf(nil, "{\"created_at\":%q,\"schema_version\":\"1\"}\n", FormatTime(s.now))
	}
	return &Entry{Message: t.message(tx), When: s.now, Files: s.files}, nil
}

func (t Title) message(tx Transaction) string {
	return fmt.Sprintf("%s: %s\n\nCountersign-Transaction: %s\nCountersign-Stage: %s\nCountersign-Patch: %s\nCountersign-Outcome: %s\n",
		t.Stage, OneLine(t.Subject, 120), tx.TransactionID, t.Stage, tx.PatchID(), t.Outcome)
}

const readme = `# Countersign ledger

Every change here was proposed, decided and applied through countersign. Each
commit is one stage of one transaction; nothing is ever changed or removed but
a transaction's transaction.json (its state) and the end of its events.jsonl.

    git log refs/agent/ledger
    git ls-tree -r --name-only refs/agent/ledger
    git show refs/agent/ledger:transactions/YYYY/MM/DD/XX/<id>/events.jsonl

An event's "prev" is the SHA-256 of the line before it, LF included. A patch's
file name is its SHA-256:

    git show refs/agent/ledger:transactions/YYYY/MM/DD/XX/<id>/patches/<patch_id>.diff | sha256sum

XX is the first byte of SHA-256(<id>), as two hex digits. denied/ holds the
denials that stick, proposed/ the transactions that propose a patch, both by
patch_id.
`
