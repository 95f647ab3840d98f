package witness_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/pipeline/witness"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

func TestParseFile(t *testing.T) {
	t.Parallel()
	f := three(t, "\tgroup two 2 north south own  \nquorum two\n")
	name, err := f.Origin()
	if err != nil || name != origin || len(f.Witnesses) != 3 || !f.Demands() {
		t.Fatalf("%v %+v", err, f)
	}
	for i, want := range []string{"https://north.example/app/", "", "http://127.0.0.1:7380/"} {
		if f.Witnesses[i].URL != want {
			t.Errorf("%s: %s", f.Witnesses[i].Name, f.Witnesses[i].URL)
		}
	}
	if three(t, "").Demands() {
		t.Error("a file without a quorum demands one")
	}
}

// TestT82FileRefused: nothing that is wrong in a file reads as a file that asks for less.
func TestT82FileRefused(t *testing.T) {
	t.Parallel()
	fourth, again := newParty("w.fourth.example", true, 4), newParty("another.name.example", true, 1)
	for _, c := range []struct{ more, want string }{
		{"quorum none", "demands nobody"},
		{"quorum", "quorum NAME"},
		{"quorum north south", "quorum NAME"},
		{"quorum north\nquorum south", "already"},
		{"quorum west", "of a line before"},
		{"quorum two\ngroup two 2 north south", "of a line before"},
		{"group two 3 north south", "1 to 2"},
		{"group two 0 north south", "1 to 2"},
		{"group two 01 north south", "1 to 2"},
		{"group two some north south", "1 to 2"},
		{"group two any", "group NAME"},
		{"group two 2 north north", "already"},
		{"group a any north\ngroup b 2 north south", "already"},
		{"group a any a", "of a line before"},
		{"group north any south", "already"},
		{"group none any south", "cannot be one"},
		{"witness north " + fourth.String(), "already"},
		{"witness fourth " + again.String(), "already"},
		{"witness fourth " + log.String(), "is a log's"},
		{"log " + north.String(), "is a witness's"},
		{"log " + log.String(), "already"},
		{"log x", "no verifier key"},
		{"witness fourth", "witness NAME"},
		{"witness fourth " + fourth.String() + " http://w.example/", "https://"},
		{"witness fourth " + fourth.String() + " http://localhost/", "https://"},
		{"witness fourth " + fourth.String() + " ftp://w.example/", "https://"},
		{"witness fourth " + fourth.String() + " https://me:x@w.example/", "without user"},
		{"witness fourth " + fourth.String() + " https://w.example/?a", "without user"},
		{"witness fourth " + fourth.String() + " https://w.example/#a", "without user"},
		{"witness fourth " + fourth.String() + " https:///x", "without user"},
		{"witness fourth " + fourth.String() + " https://w.example/ more", "witness NAME"},
		{"Witness x", "begins with none"},
		{"north \x1b[31m", "control"},
		{"quorum north\r", "control"},
		{strings.Repeat("#\n", 1001), "more than"},
	} {
		_, err := witness.ParseFile([]byte(threeText() + c.more))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.more, err)
		}
	}
	_, err := witness.ParseFile([]byte("\n\nlog x\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "line 3: ") {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"", fmt.Sprintf("log %s\nlog %s\n", log, newParty("github.com/acme/other", false, 5))} {
		f, err := witness.ParseFile([]byte(text))
		fatal(t, err)
		if name, err := f.Origin(); err == nil {
			t.Errorf("%q is about %s", text, name)
		}
	}
}

// TestCovered: how much is vouched for, by a quorum of the file, a number, and both.
func TestCovered(t *testing.T) {
	t.Parallel()
	tree := history("a", 9)
	notes := [][]byte{signedBy(at(tree, 9), 90, north), signedBy(at(tree, 5), 50, south, north), signedBy(at(tree, 2), 20, own)}
	for _, c := range []struct {
		more    string
		atLeast int
		want    int64
	}{
		{"", 1, 9}, {"", 2, 5}, {"", 3, 2}, {"", 4, 0},
		{"quorum north", 0, 9}, {"quorum own", 0, 2}, {"quorum north", 2, 5}, {"quorum own", 1, 2},
		{"group g any south own\nquorum g", 0, 5},
		{"group g all south own\nquorum g", 0, 2},
		{"group g any south own\ngroup h 2 north g\nquorum h", 0, 5},
		{"group g all north south\ngroup h any g own\nquorum h", 0, 5},
	} {
		r, err := three(t, c.more).Check(notes, tree, c.atLeast)
		if err != nil || r.Covered != c.want || (len(r.Found) > 0) != (c.want == 0) || newest(r) != 9 {
			t.Errorf("%q, %d: %+v, %v", c.more, c.atLeast, r, err)
		}
	}
	// Nobody is asked for: nothing is vouched for, and that is a finding.
	if r, err := three(t, "").Check(notes, tree, 0); err != nil || r.Covered != 0 || len(r.Found) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}
