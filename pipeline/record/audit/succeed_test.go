package audit_test

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// written is the history of entries, from the first one that is audited.
type written struct {
	entries []writing.Entry
	from    int
	blobs   map[history.ID][]byte
}

func newWritten(entries []writing.Entry, from int) *written {
	w := &written{entries, from, map[history.ID][]byte{}}
	tree := fstest.MapFS{}
	for i, e := range entries {
		pages := page.Versions(nil).Of(tree, e)
		e.Files = maps.Clone(e.Files)
		maps.Copy(e.Files, pages)
		for name, data := range e.Files {
			tree[name] = &fstest.MapFile{Data: data}
		}
		entries[i] = e
		for _, data := range e.Files {
			w.blobs[file(data).ID] = data
		}
	}
	return w
}

func file(data []byte) history.Entry {
	return history.Entry{Mode: history.ModeFile, ID: named(data)}
}

func (w *written) Commits(visit func(history.Commit)) error {
	tree := map[string]history.Entry{}
	for i, e := range w.entries {
		c := history.Commit{ID: numbered(i + 1), Age: len(w.entries) - 1 - i, Ours: true, When: e.When.Unix(), Message: e.Message, Base: i < w.from}
		if i > 0 {
			c.Parents = []history.ID{numbered(i)}
		}
		for _, name := range slices.Sorted(maps.Keys(e.Files)) {
			c.Changes = append(c.Changes, history.Change{Path: name, Old: tree[name], New: file(e.Files[name])})
			tree[name] = file(e.Files[name])
		}
		visit(c)
	}
	return nil
}

func (w *written) Blob(id history.ID) ([]byte, error) { return w.blobs[id], nil }

func (w *written) Former(name string) (map[string]history.Entry, error) {
	out := map[string]history.Entry{}
	for _, e := range w.entries[:w.from] {
		for at, data := range e.Files {
			if at == name || strings.HasPrefix(at, name+"/") {
				out[at] = file(data)
			}
		}
	}
	return out, nil
}

// took says what a transaction that took another one's place has in its record.
type took struct {
	file, by, repository, kind string
	diff                       string // "" for one of its own
	pull                       int
	supersedes                 func(old string) string
	reason                     func(by string) string
	early                      bool // entered before the other one ended
}

const byName = "superseded by "

// entries are the review of one proposal, its end, and the review of the next.
func (c took) entries(t *testing.T) []writing.Entry {
	t.Helper()
	old, err := writing.NewID(at(0), bytes.NewReader(make([]byte, 10)))
	fatal(t, err)
	next, err := writing.NewID(at(1), bytes.NewReader(make([]byte, 10)))
	fatal(t, err)
	first := proposed(at(0), old, took{file: "a", by: "1", repository: "100", pull: 7, kind: "patch"}, "")
	review := entry(t, first, "review", true)
	end := writing.NewStage(first.Log, at(1), secret.Default())
	end.Status(ledger.Superseded, c.reason(next))
	end.Close()
	closed := entry(t, end, "apply", false)
	second := entry(t, proposed(at(1), next, c, c.supersedes(old)), "review", false)
	if c.early {
		closed, second = second, closed
	}
	return []writing.Entry{review, closed, second}
}

func at(second int) time.Time { return time.Date(2026, 1, 5, 0, 0, second, 0, time.UTC) }

func entry(t *testing.T, s *writing.Stage, stage string, first bool) writing.Entry {
	t.Helper()
	e, err := s.Entry(writing.Title{Stage: stage, Outcome: string(s.Log.Transaction().Status), Subject: "x"}, first)
	fatal(t, err)
	return *e
}

// patchOf are the canonical bytes that add a file.
func patchOf(name string, content []byte) []byte {
	return patch.Patchset{Changes: []patch.Change{{Kind: patch.Add, Path: name, After: &patch.File{Mode: 0o100644, Data: content}}}}.Bytes()
}

func proposed(now time.Time, id string, c took, supersedes string) *writing.Stage {
	s := writing.NewStage(&ledger.Log{}, now, secret.Default())
	content := []byte(cmp.Or(c.diff, "of "+id))
	diff := patchOf(c.file, content)
	patchID, sum := canon.Hex(diff), canon.Sum(content)
	s.Event(&ledger.Meta{
		TransactionID: id, WorkspaceRoots: []string{"."}, CWD: ".", SandboxPolicy: ledger.SandboxPolicy{WritableRoots: []string{"."}},
		Proposer: ledger.Actor{Kind: "bot", ID: c.by, Login: "helper"},
	})
	s.Status(ledger.InProgress, "review")
	s.Event(&ledger.TurnStart{TransactionID: id, TurnID: "turn_1", Mode: "review"})
	s.Patch(patchID, diff)
	s.Proposed(patchID, c.pull)
	p := &ledger.Proposal{
		Kind: c.kind, WorkspaceRoot: ".", TargetFiles: []string{c.file}, BaseSHA256: map[string]*string{c.file: nil}, AfterSHA256: map[string]*string{c.file: &sum},
		PatchID: patchID, PatchFingerprint: "patchset:" + patchID, PullRequest: c.pull,
	}
	if c.pull > 0 {
		p.Repository = &ledger.Repository{ID: c.repository, Name: "acme/site"}
	}
	if supersedes != "" {
		p.Supersedes = []string{supersedes}
	}
	s.Event(&ledger.TurnItem{TransactionID: id, TurnID: "turn_1", Item: ledger.Item{
		ID: "item_1", Type: ledger.FileChange, Op: "upsert", PatchID: patchID, Metadata: p, Changes: []ledger.ItemChange{{Path: c.file, Kind: "add"}},
	}})
	s.Status(ledger.Proposed, "review")
	return s
}

// TestSuccession: L19, in a whole history and in the part of one that begins
// after the end of the older transaction.
func TestSuccession(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*took)
		want   string // of the finding, "" for none
	}{
		"as it is":           {func(*took) {}, ""},
		"another file":       {func(c *took) { c.file = "b" }, "changes none of its files"},
		"another proposer":   {func(c *took) { c.by = "2" }, "has another proposer"},
		"another pull":       {func(c *took) { c.pull = 8 }, "is no proposal for the same pull request"},
		"no pull":            {func(c *took) { c.pull = 0 }, "is no proposal for the same pull request"},
		"another repository": {func(c *took) { c.repository = "200" }, "is no proposal for the same pull request"},
		"its own diff":       {func(c *took) { c.kind = ledger.KindPullRequest }, "is no proposal for the same pull request"},
		"none": {func(c *took) {
			c.supersedes = func(string) string { return "tx_01KE5W5200041061050R3GG28A" }
		}, "did not end as superseded"},
		"no id":   {func(c *took) { c.supersedes = func(string) string { return "../../x" } }, "is no transaction's id"},
		"another": {func(c *took) { c.reason = func(string) string { return "the base changed" } }, "says that another one took its place"},
		"early":   {func(c *took) { c.early = true }, "ended only after it"},
	} {
		t.Run(name, func(t *testing.T) {
			made := took{
				file: "a", by: "1", repository: "100", pull: 7, kind: "patch", supersedes: func(old string) string { return old },
				reason: func(by string) string { return byName + by },
			}
			c.change(&made)
			entries := made.entries(t)
			for from := range 3 {
				if from == 2 && (made.early || name == "another") { // what the older one says of its end was looked at before
					continue
				}
				r, err := audit.Run(newWritten(entries, from), audit.Options{})
				fatal(t, err)
				if got := told(r); got != c.want {
					t.Errorf("from commit %d: %q, want %q; all: %+v", from, got, c.want, r.Findings)
				}
			}
		})
	}
}

// told is what an audit says of a succession; other findings fail the test that
// has none of them.
func told(r audit.Result) string {
	var all []string
	for _, f := range r.Findings {
		_, why, _ := strings.Cut(f.Message, ", which ")
		if f.RuleID != "L19" || path.Base(f.Path) != ledger.EventsFile {
			why = f.RuleID + " " + f.Path + ": " + f.Message
		}
		all = append(all, why)
	}
	return strings.Join(all, "; ")
}

func named(data []byte) history.ID {
	sum := sha1.Sum(data)
	return history.NewID(sum[:])
}
