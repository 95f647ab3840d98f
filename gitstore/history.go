package gitstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/gitstore/lineage"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// HistoryOptions say which part of a ledger's history is read, and how.
type HistoryOptions struct {
	// From is a commit of the history after which it is read: its whole id (who
	// can write to the ledger can make a commit with a given beginning of one), or
	// a ref's full name. "" reads all of it.
	From string
	// Signers are who may sign. nil reads signatures and does not verify them.
	Signers *sshsig.Allowed
}

// A History is a ledger's history, from its tip back, for one audit. It reads
// objects and nothing else: grafts and replacements (git-replace(1)) change
// nothing in it, and a shallow clone ends where its objects end.
type History struct {
	*lineage.History
	// Rollback is set where the tip does not descend from the one remembered.
	Rollback *RollbackError
	// First says that nothing was known of the ledger before.
	First bool

	objects   *git.Objects
	tip, from packfile.ID
	seen      packfile.ID // what was remembered
}

// ErrNoLedger is a ledger's ref that is not there.
var ErrNoLedger = fault.Refuse("there is no ledger here", "")

// NoLedger is ErrNoLedger, with how there comes to be one.
func (r *Repo) NoLedger() error {
	return &fault.Error{Kind: fault.Refused, Message: ErrNoLedger.Error(), Try: r.Config.SyncOr("origin", "countersign review FILE"), Cause: ErrNoLedger}
}

// History returns the ledger's history as it stands. The tip is held to the
// memory, as in Snapshot; but one that does not descend from it can be read, and
// none is remembered.
func (l *Ledger) History(_ context.Context, o HistoryOptions) (*History, error) {
	h := &History{objects: l.repo.objects}
	seen, err := l.seen.read()
	if err != nil {
		return nil, err
	}
	if h.tip, err = l.tip(); err != nil {
		return nil, err
	}
	h.seen, h.First = seen, seen.IsZero() && l.seen.known.IsZero()
	// Any other error is of the history, which is read yet.
	err = l.seen.follows(seen, h.tip, l.checkOf(h.tip).descends)
	if errors.As(err, &h.Rollback) && h.tip.IsZero() {
		return nil, err
	}
	if h.tip.IsZero() {
		return nil, l.repo.NoLedger()
	}
	if h.from, err = l.repo.commitNamed(o.From); err != nil {
		return nil, err
	}
	read := lineage.Options{Tip: h.tip, From: h.from, Signers: o.Signers}
	if read.Distortions, err = l.repo.distortions(); err != nil {
		return nil, err
	}
	h.History = lineage.New(l.repo.objects, read)
	return h, nil
}

// Remember remembers the tip of a history that was audited and found sound. If
// the audit did not begin with the first commit, what is new here is audited.
func (l *Ledger) Remember(h *History) error {
	c := l.checkOf(h.tip)
	if h.from.IsZero() {
		c.verify = func(packfile.ID) error { return nil }
	}
	err := l.seen.hold(h.seen, h.tip, c)
	if err == nil {
		l.passed = h.tip
	}
	return err
}

// commitNamed reads a whole commit id or a ref's full name; "" is none.
func (r *Repo) commitNamed(name string) (packfile.ID, error) {
	if id := r.id(name); name == "" || !id.IsZero() {
		return id, nil
	}
	if !strings.HasPrefix(name, "refs/") {
		return packfile.None, lineage.NotInHistory(name, ": give all digits of an id, or the full name of a ref")
	}
	id, err := r.tip(plumbing.ReferenceName(name))
	if err == nil && id.IsZero() {
		err = lineage.NotInHistory(name, ": there is no such ref")
	}
	if err == nil {
		id, _, err = r.peel(id)
	}
	return id, err
}

// maxTags is how many tags of tags are followed.
const maxTags = 10

// peel follows a tag to what it names, if an object is one.
func (r *Repo) peel(id packfile.ID) (packfile.ID, plumbing.ObjectType, error) {
	for range maxTags {
		o, err := r.objects.View(id)
		if err != nil || o.Type != plumbing.TagObject {
			return id, o.Type, err
		}
		next, _, tagged := packfile.HeaderLine(string(o.Data), "object ")
		if !tagged {
			return id, o.Type, lineage.NotInHistory(id.String(), ": the tag is malformed")
		}
		id = next
	}
	return id, plumbing.TagObject, lineage.NotInHistory(id.String(), fmt.Sprintf(": more than %d tags lead to it", maxTags))
}

// distortions reads what makes git show another history than there is.
func (r *Repo) distortions() (d lineage.Distortions, err error) {
	if d.Shallow, err = idsIn(filepath.Join(r.gitDir, "shallow")); err != nil {
		return d, err
	}
	if d.Grafted, err = idsIn(filepath.Join(r.gitDir, "info", "grafts")); err != nil {
		return d, err
	}
	d.Replaced = map[packfile.ID]bool{}
	refs, err := r.refs("refs/replace")
	for name := range refs {
		if id := strings.TrimPrefix(name, "refs/replace/"); packfile.IsID(id) {
			d.Replaced[packfile.ParseID(id)] = true
		}
	}
	return d, err
}

// idsIn reads the first word of each line.
func idsIn(file string) (map[packfile.ID]bool, error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ids := map[packfile.ID]bool{}
	for line := range strings.Lines(string(raw)) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); packfile.IsID(word) {
			ids[packfile.ParseID(word)] = true
		}
	}
	return ids, nil
}

// Packs checks every pack of the repository, to the last bit, and returns what
// is damaged. progress is told how many bytes are done, of how many.
func (h *History) Packs(progress func(done, total int64)) []history.Finding {
	err := h.objects.Verify(context.Background(), progress)
	if err == nil {
		return nil
	}
	var out []history.Finding
	for _, one := range unjoin(err) {
		out = append(out, history.Finding{RuleID: "OBJECT", Message: one.Error()})
	}
	return out
}

func unjoin(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return []error{err}
}
