package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/audit/history"
	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// A Note is worth knowing and breaks no rule.
type Note struct {
	Commit  string `json:"commit"`
	Path    string `json:"path"`
	Message string `json:"message"`
}

// A Result is what an audit found. From, which the caller knows, is where it
// began. Complete says that everything from there on was read. Findings are sorted by rule, path and commit, and are at
// most MaxFindings; Count is how many there are.
type Result struct {
	OK           bool              `json:"ok"`
	Complete     bool              `json:"complete"`
	Tip          string            `json:"tip"`
	From         string            `json:"from"`
	Commits      int               `json:"commits"`
	Transactions int               `json:"transactions"`
	Signed       int               `json:"signed"`
	Count        int               `json:"count"`
	Findings     []history.Finding `json:"findings"`
	Notes        []Note            `json:"notes"`
	Branch       *Branch           `json:"branch,omitempty"` // if one was asked for
}

// MaxFindings is how many findings, and how many notes, a Result holds.
const MaxFindings = 1000

func (a *auditor) result(transactions int) Result {
	r := Result{
		Tip: a.o.Tip, Commits: int(a.commits.Load()), Transactions: transactions,
		Signed: int(a.signed.Load()), Count: a.found.count, OK: a.found.count == 0, Complete: !a.found.incomplete,
	}
	a.found.trim()
	r.Findings = append([]history.Finding{}, a.found.all...)
	r.Notes = append([]Note{}, a.found.notes...)
	slices.SortFunc(r.Notes, func(x, y Note) int {
		return cmp.Or(strings.Compare(x.Path, y.Path), strings.Compare(x.Commit, y.Commit), strings.Compare(x.Message, y.Message))
	})
	r.Notes = r.Notes[:min(len(r.Notes), MaxFindings)]
	return r
}

// findings are gathered from several goroutines; all are counted, and the first
// in order are kept.
type findings struct {
	mu         sync.Mutex
	all        []history.Finding
	notes      []Note
	count      int
	incomplete bool
}

func (f *findings) add(one history.Finding) {
	one.Path, one.Message = shown(one.Path), shown(one.Message)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	f.incomplete = f.incomplete || one.RuleID == "HISTORY" || one.RuleID == "OBJECT"
	if f.all = append(f.all, one); len(f.all) > 4*MaxFindings {
		f.trim()
	}
}

func (f *findings) note(one Note) {
	one.Path, one.Message = shown(one.Path), shown(one.Message)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, one)
}

func (f *findings) trim() {
	slices.SortFunc(f.all, func(x, y history.Finding) int {
		return cmp.Or(canon.Compare(x.RuleID, y.RuleID), canon.Compare(x.Path, y.Path),
			strings.Compare(x.Commit, y.Commit), strings.Compare(x.Message, y.Message))
	})
	f.all = f.all[:min(len(f.all), MaxFindings)]
}

// shown makes foreign text safe to print: what a reader would not see for what
// it is, is escaped.
func shown(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !ledger.Visible(r) }) < 0 {
		return s
	}
	return fmt.Sprintf("%+q", s)
}

func (a *auditor) add(rule string, commit history.ID, path, format string, args ...any) {
	a.found.add(history.Finding{RuleID: rule, Commit: commit.String(), Path: path, Message: fmt.Sprintf(format, args...)})
}
