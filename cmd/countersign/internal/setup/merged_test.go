package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

// A hub is a forge with merged pull requests 1 to n, which counts what it is asked.
type hub struct {
	mergedClient
	n     int
	fails map[int]error // by number
	list  error
	asked map[string]int
	mine  func(*forge.PullRequest)
}

func (h *hub) Merged(context.Context, time.Time) ([]forge.Merged, error) {
	h.asked["list"]++
	var out []forge.Merged
	for i := range h.n {
		out = append(out, forge.Merged{Number: i + 1, At: noon.Add(time.Duration(i) * time.Hour)})
	}
	return out, h.list
}

func (h *hub) PullRequest(_ context.Context, number int) (forge.PullRequest, error) {
	p := forge.PullRequest{Number: number, State: forge.PullRequestMerged, Title: fmt.Sprint("Work ", number), Committers: []ledger.Actor{}}
	if h.mine != nil {
		h.mine(&p)
	}
	return p, h.fails[number]
}

func (h *hub) Statements(context.Context, int) ([]approval.Statement, error) {
	ada := ledger.Actor{Kind: "user", ID: "1", Login: "ada"}
	return []approval.Statement{
		{Kind: approval.KindReview, ID: "1", State: approval.ReviewApproved, Author: ada, Body: "thank you, the password is hunter2"},
		{Kind: approval.KindIssueComment, ID: "2", Author: ada, Body: "what is this?"},
		{Kind: approval.KindIssueComment, ID: "3", Author: ada, Body: "/approve patchset:" + strings.Repeat("0", 64), Earlier: []string{"hm"}},
	}, nil
}

func (h *hub) Access(context.Context, ledger.Actor) (approval.Access, error) {
	h.asked["access"]++
	return approval.Access{Permission: "write"}, nil
}

func fetch(t *testing.T, f *MergedPulls, h *hub) leftUnread {
	t.Helper()
	h.asked = map[string]int{}
	left, err := f.Fetch(context.Background(), h, time.Time{}, noon, func() error { h.asked["save"]++; return nil }, func(int, int) {})
	teststand.Fatal(t, err)
	return left
}

// TestFetchGoesOn: what was read is not asked for again, what was not is.
func TestFetchGoesOn(t *testing.T) {
	f := &MergedPulls{}
	h := &hub{n: 100, fails: map[int]error{50: &rest.Error{Kind: rest.KindRateLimited, Message: "enough"}, 97: errors.New("half of an answer")}}
	left := fetch(t, f, h)
	if left.Err == nil || len(left.Pulls)+len(f.Pulls) != 100 || len(f.Pulls) < 40 {
		t.Fatalf("%d are left, %d are here, %v", len(left.Pulls), len(f.Pulls), left.Err)
	}
	if left.Pulls[97].Err.Error() != "half of an answer" || left.Pulls[1].Err == nil || left.Pulls[50].Err == nil {
		t.Errorf("%v", left.Pulls)
	}
	here := len(f.Pulls)
	h.fails = nil
	if left = fetch(t, f, h); left.Err != nil || len(left.Pulls) != 0 || len(f.Pulls) != 100 || h.asked["access"] != 1 || h.asked["save"] == 0 {
		t.Errorf("%d were here, %d are; %v, asked %v", here, len(f.Pulls), left, h.asked)
	}
	if left = fetch(t, f, h); len(left.Pulls) != 0 || h.asked["access"] != 0 || h.asked["save"] != 0 {
		t.Errorf("all is known, and asked were %v", h.asked)
	}
	for i, p := range f.Pulls {
		if p.PullRequest.Number != i+1 {
			t.Fatalf("number %d is at place %d", p.PullRequest.Number, i)
		}
	}
	if n := len(f.Since(noon.Add(90 * time.Hour))); n != 10 {
		t.Errorf("%d since the ninetieth hour", n)
	}
}

// TestFetchUnlike: a pull request that is not what the list says is not kept, and neither
// is what people said that decides nothing.
func TestFetchUnlike(t *testing.T) {
	f := &MergedPulls{}
	left := fetch(t, f, &hub{n: 1, mine: func(p *forge.PullRequest) { p.State = forge.PullRequestOpen }})
	if len(f.Pulls) != 0 || left.Pulls[1].Err == nil || left.Err != nil {
		t.Errorf("%+v, %+v", f, left)
	}
	fetch(t, f, &hub{n: 1})
	line, err := canon.Line(f)
	teststand.Fatal(t, err)
	if bytes.Contains(line, []byte("hunter2")) || bytes.Contains(line, []byte("what is this")) || bytes.Contains(line, []byte(`"hm"`)) || len(f.Pulls[0].Statements) != 2 {
		t.Errorf("%s", line)
	}
	h := &hub{n: 1, list: errors.New("page 2 cannot be had"), asked: map[string]int{}}
	if _, err := f.Fetch(context.Background(), h, time.Time{}, noon, func() error { return nil }, func(int, int) {}); err == nil {
		t.Error("half of a list was taken for all of it")
	}
}

func TestLoad(t *testing.T) {
	name := filepath.Join(t.TempDir(), "below", "merged.json")
	f, err := loadMerged(name, "https://example.org/acme/site")
	if err != nil || len(f.Pulls) != 0 {
		t.Fatalf("%+v, %v", f, err)
	}
	fetch(t, f, &hub{n: 2})
	teststand.Fatal(t, f.Save(name))
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if again, err := loadMerged(name, f.Repository); err != nil || len(again.Pulls) != 2 || again.Pulls[1].PullRequest.Title != "Work 2" {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := loadMerged(name, "https://example.org/acme/other"); err == nil || !strings.Contains(err.Error(), "it is about https://example.org/acme/site") {
		t.Errorf("%v", err)
	}
	whole, err := os.ReadFile(name)
	teststand.Fatal(t, err)
	for what, text := range map[string]string{
		"cut off":               string(whole[:len(whole)/2]),
		"another schema":        strings.Replace(string(whole), "merged/1", "merged/2", 1),
		"no schema":             strings.Replace(string(whole), `"schema"`, `"scheme"`, 1),
		"a number twice":        strings.Replace(string(whole), `"number":2`, `"number":1`, 1),
		"no number":             strings.Replace(string(whole), `"number":1`, `"number":0`, 1),
		"no time of the merge":  strings.Replace(string(whole), "2026-01-05T12:00:00Z", "", 1),
		"a member that is none": strings.Replace(string(whole), `"read_at"`, `"read_by"`, 1),
	} {
		if text == string(whole) {
			t.Fatalf("%s changes nothing", what)
		}
		teststand.Fatal(t, os.WriteFile(name, []byte(text), 0o600))
		if _, err := loadMerged(name, f.Repository); err == nil {
			t.Errorf("%s is read", what)
		}
	}
}

func FuzzDecode(f *testing.F) {
	file := &MergedPulls{Schema: "countersign/merged/1"}
	_, err := file.Fetch(context.Background(), &hub{n: 2, asked: map[string]int{}}, time.Time{}, noon, func() error { return nil }, func(int, int) {})
	teststand.Fatal(f, err)
	line, err := canon.Line(file)
	teststand.Fatal(f, err)
	f.Add(line)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var got MergedPulls
		if decodeMerged(raw, &got) != nil {
			return
		}
		again, err := canon.Line(got)
		teststand.Fatal(t, err)
		var other MergedPulls
		if err := decodeMerged(again, &other); err != nil {
			t.Errorf("what was read is not read again: %v\n%s", err, again)
		}
		_, _ = got.Since(noon), got.Since(time.Time{})
	})
}
