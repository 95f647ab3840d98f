package cheat

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// mallory takes the place of who approved.
const mallory = "mallory"

// A stage is a commit of one transaction, with those after it.
type stage struct {
	commit
	after []commit
	id    string // of the transaction
	paths []string
}

// all are the commits that a change in this stage makes new.
func (s stage) all() []commit { return append([]commit{s.commit}, s.after...) }

func (s stage) dir() string { return ledger.Dir(s.id) + "/" }

// stage finds the latest commit whose title begins with one of these words and whose
// paths fit.
func (c *cheat) stage(titles []string, fits func(paths []string) bool) (stage, bool, error) {
	var s stage
	found, after, err := c.latest(func(at commit) (bool, error) {
		message := at.message()
		if !slices.ContainsFunc(titles, func(t string) bool { return strings.HasPrefix(message, t+": ") }) {
			return false, nil
		}
		paths, err := c.added(at)
		if err != nil {
			return false, err
		}
		for _, path := range paths {
			if id, ok := ledger.TransactionOf(path); ok && fits(paths) {
				s.id, s.paths = id, paths
				return true, nil
			}
		}
		return false, nil
	})
	s.commit, s.after = found, after
	return s, s.id != "", err
}

func whatever([]string) bool { return true }

// patchOf finds the latest patch that was recorded.
func (c *cheat) patchOf() (s stage, path string, err error) {
	isPatch := func(p string) bool { return strings.Contains(p, "/patches/") && strings.HasSuffix(p, ".diff") }
	s, ok, err := c.stage([]string{"review", "propose"}, func(paths []string) bool { return slices.ContainsFunc(paths, isPatch) })
	if err == nil && !ok {
		err = &CannotError{"this ledger has no patch that is stored as text"}
	}
	if err != nil {
		return s, "", err
	}
	return s, s.paths[slices.IndexFunc(s.paths, isPatch)], nil
}

// flipped changes one letter in the last line that a patch adds.
func flipped(patch []byte) []byte {
	out := bytes.Clone(patch)
	for i := len(out) - 1; i >= 0; i-- {
		if b := out[i]; b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' {
			out[i] ^= 1
			return out
		}
	}
	return append(out, 'x')
}

func (c *cheat) patch() error {
	s, path, err := c.patchOf()
	if err != nil {
		return err
	}
	c.changed = fmt.Sprintf("One byte of %s is another one.", path)
	return c.rewrite(s.all(), edit{path, flipped})
}

func (c *cheat) stored() error {
	s, path, err := c.patchOf()
	if err != nil {
		return err
	}
	if _, c.damaged, err = c.file(s.commit, path); err != nil {
		return err
	}
	c.changed = fmt.Sprintf("One byte of %s is another one where Git keeps it as %s. No other object was changed.", path, c.damaged)
	return nil
}

// decision finds the latest commit that records a decision of this kind.
func (c *cheat) decision(title string, kind ledger.Decision) (stage, *ledger.ApprovalDecision, error) {
	s, ok, err := c.stage([]string{title}, whatever)
	none := &CannotError{fmt.Sprintf("this ledger has no commit that records the decision %q", string(kind))}
	if err != nil {
		return s, nil, err
	}
	if !ok {
		return s, nil, none
	}
	raw, _, err := c.file(s.commit, s.dir()+ledger.EventsFile)
	if err != nil {
		return s, nil, err
	}
	log, err := ledger.ReadLog(raw)
	if err != nil {
		return s, nil, err
	}
	for _, d := range slices.Backward(ledger.Of[*ledger.ApprovalDecision](log)) {
		if d.Decision == kind {
			return s, d, nil
		}
	}
	return s, nil, none
}

func (c *cheat) approver() error {
	s, d, err := c.decision("approve", ledger.Approve)
	if err != nil {
		return err
	}
	c.changed = fmt.Sprintf("In the events of %s, %q approved in place of %q.", s.id, mallory, d.Source.Author.Login)
	return c.rewrite(s.all(), events(s, another(d)))
}

// another puts mallory in the place of who took a decision.
func another(d *ledger.ApprovalDecision) func([]ledger.Event) []ledger.Event {
	login, id := canonText(d.Source.Author.Login), canonText(d.Source.Author.ID)
	return func(all []ledger.Event) []ledger.Event {
		for i, e := range all {
			if e.Type == ledger.TypeDecision && bytes.Contains(e.Payload, canonText(d.ApprovalRequestID)) {
				p := bytes.ReplaceAll(e.Payload, login, canonText(mallory))
				all[i].Payload = bytes.ReplaceAll(p, id, canonText("user:"+mallory))
			}
		}
		return all
	}
}

func canonText(s string) []byte {
	raw, err := canon.Marshal(s)
	if err != nil {
		return []byte(`"` + s + `"`)
	}
	return raw
}

// dropped finds a transaction that has an event to drop, in the commit that proposes it.
func (c *cheat) dropped() (stage, error) {
	s, ok, err := c.stage([]string{"review", "propose"}, whatever)
	if err == nil && !ok {
		err = &CannotError{"this ledger has no proposal"}
	}
	return s, err
}

// without leaves out an event.
func without(n int) func([]ledger.Event) []ledger.Event {
	return func(all []ledger.Event) []ledger.Event { return slices.Delete(all, n, n+1) }
}

// victim is the event that is dropped: the last item of the turn, else the second event.
func (c *cheat) victim(s stage) (n int, err error) {
	raw, _, err := c.file(s.commit, s.dir()+ledger.EventsFile)
	if err != nil {
		return 0, err
	}
	log, err := ledger.ReadLog(raw)
	if err != nil {
		return 0, err
	}
	all := log.Events()
	for i, e := range slices.Backward(all) {
		if e.Type == ledger.TypeTurnItem {
			return i, nil
		}
	}
	if len(all) < 2 {
		return 0, &CannotError{"the latest transaction has one event alone"}
	}
	return 1, nil
}

// event leaves an event out.
func (c *cheat) event() error {
	s, err := c.dropped()
	if err != nil {
		return err
	}
	n, err := c.victim(s)
	if err != nil {
		return err
	}
	c.changed = fmt.Sprintf("Event %d of %s is left out.", n+1, s.id)
	return c.rewrite(s.all(), events(s, without(n)))
}

func (c *cheat) rewind() error {
	last, err := c.commit(c.tip)
	if err != nil {
		return err
	}
	if len(last.Parents) != 1 {
		return &CannotError{"this ledger has one commit alone"}
	}
	subject, _, _ := strings.Cut(last.message(), "\n")
	c.tip = last.Parents[0]
	c.changed = fmt.Sprintf("The ledger ends before its last commit, %s (%s).", last.id, subject)
	return nil
}
