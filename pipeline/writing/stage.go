// Package writing is the one way into a ledger: a stage collects what it records, without secrets, as an entry of a store.
package writing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/oklog/ulid/v2"
)

// An Entry is one commit of the ledger: the files it adds or, for
// transaction.json and events.jsonl, replaces. Paths are from the ledger's root.
type Entry struct {
	Message string
	When    time.Time
	Files   map[string][]byte

	// What events.jsonl among the files holds, where a Stage made it: Record need not read it again.
	payloads []ledger.Payload
	tx       ledger.Transaction
}

// Record is what the events of the transaction that an entry adds to hold, up to this entry, and what they fold to, with the
// path of its events.jsonl; "" where an entry adds to none, or to what cannot be read.
func (e Entry) Record() (events string, payloads []ledger.Payload, tx ledger.Transaction) {
	for name := range e.Files {
		if id, _, ok := ledger.Within(name); ok && name == path.Join(ledger.Dir(id), ledger.EventsFile) {
			events = name
		}
	}
	if events == "" || e.payloads != nil {
		return events, e.payloads, e.tx
	}
	log, err := ledger.ReadLog(e.Files[events])
	if err != nil {
		return "", nil, ledger.Transaction{}
	}
	return events, log.Payloads(), log.Transaction()
}

// A Tip is a commit that a ledger's tip must be or descend from, and in words who
// says so.
type Tip struct{ Commit, Source string }

// A Snapshot is the ledger at one moment. Tree stays readable and unchanged
// however the ledger moves on. Before the first entry Tip is "" and Tree empty.
//
// Unjoined are ledgers that were fetched, and could not be joined with this one.
type Snapshot struct {
	Tip      string
	Tree     fs.FS
	Unjoined []fs.FS
}

// UnjoinedDenials are the denials of a patch in what was fetched and could not be
// joined. They stand as those of the ledger itself do, and the reason of each says
// how it gets there.
func (s Snapshot) UnjoinedDenials(patchID string) ([]ledger.Denial, error) {
	var out []ledger.Denial
	for _, tree := range s.Unjoined {
		denials, err := ledger.Denials(tree, patchID)
		if err != nil {
			return nil, fmt.Errorf("reading the ledger that was fetched: %w", err)
		}
		for _, d := range denials {
			d.Reason = strings.TrimSuffix("in the remote's ledger, which countersign sync joins with this one: "+d.Reason, ": ")
			out = append(out, d)
		}
	}
	return out, nil
}

// ErrMoved is what a Store's Append returns when the ledger's tip is not the
// one given. Nothing was written.
var ErrMoved = errors.New("the ledger has moved")

// A Store keeps the ledger. Snapshot may be told which paths will be read, so
// that a ledger which is elsewhere can be asked for them at once; any other can
// be read as well. Append adds one commit an entry on exactly the given tip and
// returns the last one; when it returns an error that is not ErrMoved, the
// entries may or may not be there, and a new Snapshot tells.
//
// At returns the ledger as it was at a tip that Snapshot or Append returned.
type Store interface {
	Snapshot(ctx context.Context, paths ...string) (Snapshot, error)
	At(ctx context.Context, tip string) (Snapshot, error)
	Append(ctx context.Context, tip string, entries ...Entry) (string, error)
}

// Pages make the pages that a commit brings for people who browse the ledger; a Store
// asks them, and nothing is decided by them.
type Pages interface {
	// Of returns the pages of an entry by path from the ledger's root, tree, as it is before.
	Of(tree fs.FS, e Entry) map[string][]byte
	// TablesOf names those of them of which Of reads what is there before.
	TablesOf(e Entry) []string
}

// A Stage collects what one stage records about one transaction: events, and
// the files they name. Errors are kept until Entry, so that a stage reads as a
// list of what happened.
//
// It is the one way into the ledger, and whatever goes through it is scrubbed:
// events, artifacts, patches, the index and the commit's message.
type Stage struct {
	Log   *ledger.Log
	now   time.Time
	scrub Scrubber
	files map[string][]byte
	err   error
}

// NewStage begins a stage on a log, which it will extend.
func NewStage(log *ledger.Log, now time.Time, scrub Scrubber) *Stage {
	return &Stage{Log: log, now: now, scrub: scrub, files: map[string][]byte{}}
}

// Now is the time of what the stage records, to the millisecond as it is written.
func (s *Stage) Now() time.Time { return s.now.UTC().Truncate(time.Millisecond) }

// Event records one event.
func (s *Stage) Event(p ledger.Payload) {
	if s.err != nil {
		return
	}
	clean, err := scrubbed(s.scrub, p)
	if err == nil {
		err = s.Log.Append(s.now, clean)
	}
	if err != nil && !reflect.DeepEqual(clean, p) {
		err = &fault.Error{ // the event says nothing any more without what the patch holds as a secret
			Kind: fault.Refused, Try: "take the word out of the patch, or have it read from the environment", Cause: err, Message: fmt.Sprintf(
				"the patch holds as a secret a word that the record itself is made of (%s), and the ledger keeps no secret: %v", p.Type(), err),
		}
	}
	s.err = err
}

// fail keeps the first error.
func (s *Stage) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Status records a move to another status.
func (s *Stage) Status(to ledger.Status, reason string) {
	t := s.Log.Transaction()
	s.Event(&ledger.StatusChange{TransactionID: t.TransactionID, From: t.Status, To: to, Reason: reason})
}

// Close records the end of the transaction in its present status.
func (s *Stage) Close() {
	t := s.Log.Transaction()
	s.Event(&ledger.Close{TransactionID: t.TransactionID, Status: t.Status})
}

// contentType is that of every artifact.
const contentType = "application/json"

// file adds a file to the transaction's directory.
func (s *Stage) file(name string, data []byte) {
	if s.err != nil {
		return // and there may be no transaction
	}
	s.files[path.Join(ledger.Dir(s.Log.Transaction().TransactionID), name)] = data
}

// line is a document as it is stored, and whether anything was taken out of it.
func (s *Stage) line(doc any) (line []byte, redacted bool, err error) {
	raw, clean, err := Scrub(s.scrub, doc)
	if err != nil {
		return nil, false, err
	}
	return append(slices.Clip(clean), '\n'), !bytes.Equal(raw, clean), nil
}

// Patch stores a patch's canonical bytes, and returns those that are stored:
// not the same where it holds secrets.
func (s *Stage) Patch(patchID string, diff []byte) []byte {
	stored := s.scrub.Diff(diff)
	s.file(ledger.PatchFile(patchID), stored)
	return stored
}

// Stored stores a patch as another transaction of the ledger has it, scrubbed
// when that was recorded, and the sealed one unless that is nil.
func (s *Stage) Stored(patchID string, stored, sealed []byte) {
	s.file(ledger.PatchFile(patchID), stored)
	if sealed != nil {
		s.Sealed(patchID, sealed)
	}
}

// Sealed stores a patch that only the holders of a key can read.
func (s *Stage) Sealed(patchID string, sealed []byte) { s.file(ledger.SealedFile(patchID), sealed) }

// Result stores the ApplyResult of a change that is applied.
func (s *Stage) Result(res ledger.ApplyResult) {
	line, _, err := s.line(res)
	if err != nil {
		s.fail(fmt.Errorf("%s: %w", ledger.ResultFile, err))
		return
	}
	s.file(ledger.ResultFile, line)
}

// Artifact stores a JSON document as evidence, records that, and returns the
// artifact's path in the transaction directory. One that is there already is
// left as it is.
func (s *Stage) Artifact(kind string, doc any) string {
	data, redacted, err := s.line(doc)
	if err != nil {
		s.fail(fmt.Errorf("artifact %s: %w", kind, err))
		return ""
	}
	id := canon.Hex(data)
	stored := func(a *ledger.ArtifactStored) bool { return a.ArtifactID == id }
	if slices.ContainsFunc(ledger.Of[*ledger.ArtifactStored](s.Log), stored) {
		return ledger.ArtifactFile(id)
	}
	s.file(ledger.ArtifactFile(id), data)
	s.Event(&ledger.ArtifactStored{
		TransactionID: s.Log.Transaction().TransactionID, ArtifactID: id, Kind: kind, Path: ledger.ArtifactFile(id),
		ContentType: contentType, Redacted: redacted, StoredSHA256: canon.Sum(data),
	})
	return ledger.ArtifactFile(id)
}

// Denied adds a denial to the index that later transactions are checked
// against.
func (s *Stage) Denied(d ledger.Denial) {
	data, _, err := s.line(d)
	if err != nil {
		s.fail(err)
		return
	}
	s.files[path.Join(ledger.DeniedDir(ledger.FingerprintPatch(d.Fingerprint)), d.Kind+".json")] = data
}

// Proposed adds the transaction to the index of what proposes a patch and, unless
// that is 0, to that of what is proposed for a pull request.
func (s *Stage) Proposed(patchID string, pullRequest int) {
	tx := s.Log.Transaction()
	data, err := canon.Line(ledger.Listed{BaseCommit: s.Log.Meta().BaseCommit, TransactionID: tx.TransactionID})
	if err != nil {
		s.fail(err)
	}
	s.files[path.Join(ledger.ProposedDir(patchID), tx.TransactionID+".json")] = data
	if pullRequest > 0 {
		s.files[path.Join(ledger.PullDir(pullRequest), tx.TransactionID+".json")] = data
	}
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
	s.file(ledger.TransactionFile, state)
	s.file(ledger.EventsFile, s.Log.Bytes())
	if first {
		s.files[ledger.SchemaFile] = Schema(ledger.FormatTime(s.now), canon.Version())
	}
	message := fmt.Sprintf("%s: %s\n\nCountersign-Transaction: %s\nCountersign-Stage: %s\nCountersign-Patch: %s\nCountersign-Outcome: %s\n",
		t.Stage, ledger.OneLine(s.scrub.Text(t.Subject), 120), tx.TransactionID, t.Stage, tx.PatchID(), t.Outcome)
	return &Entry{Message: message, When: s.now, Files: s.files, payloads: slices.Clip(s.Log.Payloads()), tx: tx}, nil
}

// OwnEntry is the commit that adds one of the ledger's own events to a tree. The caller has scrubbed p.
func OwnEntry(tree fs.FS, at time.Time, p ledger.Own) (Entry, error) {
	version, events, err := ownFiles(tree)
	if err != nil {
		return Entry{}, err
	}
	message, events, err := ledger.OwnCommit(version, events, at, p)
	return Entry{Message: message, When: at, Files: map[string][]byte{ledger.LedgerEventsFile: events}}, err
}

// NewID makes a transaction's id: "tx_" and a ULID of the moment and of ten
// bytes of entropy.
func NewID(at time.Time, entropy io.Reader) (string, error) {
	u, err := ulid.New(ulid.Timestamp(at), entropy)
	if err != nil {
		return "", fmt.Errorf("making a transaction id: %w", err)
	}
	return ledger.IDPrefix + u.String(), nil
}

// IsListed reports whether a path is below proposed/.
func IsListed(name string) bool { return strings.HasPrefix(name, ledger.ProposedRoot+"/") }
