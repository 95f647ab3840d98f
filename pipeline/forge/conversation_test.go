package forge

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

var (
	ada = ledger.Actor{Kind: "user", ID: "1", Login: "ada"}
	bob = ledger.Actor{Kind: "user", ID: "2", Login: "bob"}
)

// A small forge has one team, of ada, and counts what it is asked.
type small struct {
	pull  PullRequest
	asked map[string]int
}

func (s *small) PullRequest(_ context.Context, number int) (PullRequest, error) {
	s.asked["PullRequest"]++
	s.pull.Number = number
	return s.pull, nil
}

func (s *small) Statements(context.Context, int) ([]approval.Statement, error) { return nil, nil }

func (s *small) Access(_ context.Context, who ledger.Actor) (approval.Access, error) {
	s.asked["Access "+who.Login]++
	return approval.Access{Permission: map[string]string{"ada": "write", "bob": "read"}[who.Login]}, nil
}

func (s *small) Member(_ context.Context, team string, who ledger.Actor) (bool, error) {
	s.asked["Member"]++
	if team != "acme/core" {
		return false, errors.New("no such team")
	}
	return who.ID == ada.ID, nil
}

func (s *small) SigningKeys(_ context.Context, who ledger.Actor) ([]approval.Registered, error) {
	s.asked["SigningKeys "+who.Login]++
	return nil, nil
}

func (s *small) conversation() *Conversation {
	return &Conversation{reading: &reading{
		forge: s, pull: s.pull, access: map[string]approval.Access{}, members: map[question]bool{}, owners: map[question]bool{},
	}}
}

// TestReadOnce: a pull request is read once, until the reader forgets it, and is
// never taken for that of another repository.
func TestReadOnce(t *testing.T) {
	here, there := &ledger.Repository{ID: "100"}, &ledger.Repository{ID: "200"}
	of := func(number int, in *ledger.Repository) ledger.Transaction {
		return ledger.Transaction{Pointers: ledger.Pointers{Proposal: &ledger.Proposal{PullRequest: number, Repository: in}}}
	}
	s := &small{pull: PullRequest{Repository: *here}, asked: map[string]int{}}
	r := &PullReader{Forge: s}
	for i, c := range []struct {
		tx     ledger.Transaction
		forget bool
		reads  int
		ok     bool
	}{
		{of(7, here), false, 1, true},
		{of(7, here), false, 1, true},
		{of(7, here), true, 2, true},
		{of(7, there), false, 3, false},
		{of(7, nil), false, 4, false},
		{of(8, here), false, 5, true},
	} {
		if c.forget {
			r.Forget()
		}
		pull, err := r.Pull(t.Context(), c.tx)
		if s.asked["PullRequest"] != c.reads || (err == nil) != c.ok || c.ok && pull.Number != c.tx.PullRequest() {
			t.Errorf("%d: %d reads, %d, %v", i, s.asked["PullRequest"], pull.Number, err)
		}
		var unread *ReadingError
		if !c.ok && !errors.As(err, &unread) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := new(PullReader).Pull(t.Context(), of(7, here)); !errors.Is(err, fault.Away) {
		t.Error(err)
	}
}

// TestWhyNoDenial: who may not decide may not deny, but for the author of the pull
// request, unless the change is theirs as well.
func TestWhyNoDenial(t *testing.T) {
	for _, c := range []struct {
		who, author, proposer ledger.Actor
		counts                bool
	}{
		{ada, bob, bob, true},
		{bob, ada, ada, false},
		{bob, bob, ada, true},
		{bob, bob, bob, false},
	} {
		talk := (&small{pull: PullRequest{Author: c.author}, asked: map[string]int{}}).conversation()
		if _, err := talk.Access(t.Context(), c.who); err != nil {
			t.Fatal(err)
		}
		if why := talk.WhyNoDenial(policy.Default(), c.proposer, c.who); (why == "") != c.counts {
			t.Errorf("%+v: %q", c, why)
		}
	}
}

// trees are the trees of commits.
type trees map[string]fstest.MapFS

func (o trees) Tree(_ context.Context, commit string) (fs.FS, error) { return o[commit], nil }

// TestStanding: what the forge answered is on record where it was a yes, and each
// question is asked once.
func TestStanding(t *testing.T) {
	s := &small{asked: map[string]int{}}
	talk := s.conversation()
	talk.trees = trees{"c1": {".github/CODEOWNERS": {Data: []byte("*.go @bob\n")}}}
	about := talk.Ask(t.Context(), approval.Case{}, "c1")
	for range 2 {
		for _, who := range []ledger.Actor{ada, bob} {
			if in, err := about.Teams("acme/core", who); in != (who == ada) || err != nil {
				t.Errorf("%s: %v %v", who.Login, in, err)
			}
			if owns, err := about.Owners("a.go", who); owns != (who == bob) || err != nil {
				t.Errorf("%s: %v %v", who.Login, owns, err)
			}
			if _, err := talk.Access(t.Context(), who); err != nil {
				t.Error(err)
			}
		}
	}
	if talk.TeamsUnread() {
		t.Error("a team is unread")
	}
	if _, err := about.Teams("acme/none", ada); err == nil || !talk.TeamsUnread() {
		t.Errorf("%v %v", err, talk.TeamsUnread())
	}
	if want := map[string]int{"Access ada": 1, "Access bob": 1, "Member": 3}; !maps.Equal(s.asked, want) {
		t.Errorf("asked %v, want %v", s.asked, want)
	}
	doc := talk.Standing(time.Unix(0, 0), ledger.PolicyRef{Commit: "c1"}, &ledger.Log{})
	if len(doc.Teams) != 1 || len(doc.Teams["acme/core"]) != 1 || doc.Teams["acme/core"][0] != ada.ID ||
		len(doc.Owners) != 1 || len(doc.Owners["a.go"]) != 1 || doc.Owners["a.go"][0] != bob.ID || doc.Policy.Commit != "c1" {
		t.Errorf("%+v", doc)
	}
}
