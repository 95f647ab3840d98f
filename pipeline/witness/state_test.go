package witness_test

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/witness"
)

func proofOf(t testing.TB, tree *witness.Tree, old, n int64) []witness.Hash {
	t.Helper()
	proof, err := tree.Consistency(old, n)
	fatal(t, err)
	return proof
}

// TestT79WitnessSaysNo: what a witness answers to each request, with the status that the specification has for it.
func TestT79WitnessSaysNo(t *testing.T) {
	t.Parallel()
	tree, other := history("a", 20), history("b", 20)
	logs := []witness.Key{log.Key}
	empty := witness.State{Key: north.Key, Logs: map[string][]byte{}}
	body := func(old int64, proof []witness.Hash, note []byte) []byte {
		return witness.Request{Old: old, Proof: proof, Note: note}.Body()
	}
	at9, _, err := empty.Add(body(0, nil, signedBy(at(tree, 9), 0)), logs, north.sign, 90)
	fatal(t, err)
	elsewhere := at(tree, 9)
	elsewhere.Origin = "github.com/acme/other"
	stranger := newParty(origin, false, 7)
	byStranger, err := at(tree, 12).SignLog(stranger.Key, stranger.sign)
	fatal(t, err)
	nine, twelve := signedBy(at(tree, 9), 0), signedBy(at(tree, 12), 0)
	for name, c := range map[string]struct {
		from   witness.State
		body   []byte
		status int
		size   int64
	}{
		"the first":                      {empty, body(0, nil, nine), 0, 0},
		"the next":                       {at9, body(9, proofOf(t, tree, 9, 12), twelve), 0, 0},
		"the same again":                 {at9, body(9, nil, nine), 0, 0},
		"with signatures of others":      {at9, body(9, proofOf(t, tree, 9, 12), signedBy(at(tree, 12), 9, south, own)), 0, 0},
		"nothing":                        {empty, nil, http.StatusBadRequest, 0},
		"no note":                        {empty, []byte("old 0\n\n"), http.StatusNotFound, 0},
		"a size with a zero before":      {empty, append([]byte("old 00\n\n"), nine...), http.StatusBadRequest, 0},
		"a negative size":                {empty, append([]byte("old -1\n\n"), nine...), http.StatusBadRequest, 0},
		"a proof that is none":           {at9, append([]byte("old 9\nx\n\n"), twelve...), http.StatusBadRequest, 0},
		"64 hashes":                      {at9, body(9, make([]witness.Hash, 64), twelve), http.StatusBadRequest, 0},
		"too long":                       {at9, make([]byte, witness.MostRequest+1), http.StatusBadRequest, 0},
		"an old size beyond":             {at9, body(13, nil, twelve), http.StatusBadRequest, 0},
		"another log":                    {empty, body(0, nil, signedBy(elsewhere, 0)), http.StatusNotFound, 0},
		"another key":                    {empty, body(0, nil, byStranger), http.StatusForbidden, 0},
		"a changed root":                 {empty, body(0, nil, bytes.Replace(nine, []byte("\n9\n"), []byte("\n8\n"), 1)), http.StatusForbidden, 0},
		"from nothing, with a proof":     {empty, body(0, make([]witness.Hash, 1), nine), http.StatusUnprocessableEntity, 0},
		"from nothing, after nine":       {at9, body(0, nil, twelve), http.StatusConflict, 9},
		"from eight, after nine":         {at9, body(8, proofOf(t, tree, 8, 12), twelve), http.StatusConflict, 9},
		"an old checkpoint, after nine":  {at9, body(5, nil, signedBy(at(tree, 5), 0)), http.StatusConflict, 9},
		"without the proof":              {at9, body(9, nil, twelve), http.StatusUnprocessableEntity, 0},
		"with another's proof":           {at9, body(9, proofOf(t, other, 9, 12), twelve), http.StatusUnprocessableEntity, 0},
		"another history":                {at9, body(9, proofOf(t, other, 9, 12), signedBy(at(other, 12), 0)), http.StatusUnprocessableEntity, 0},
		"another history, the same size": {at9, body(9, nil, signedBy(at(other, 9), 0)), http.StatusUnprocessableEntity, 0},
		"no commits":                     {empty, body(0, nil, signedBy(at(tree, 0), 0)), http.StatusUnprocessableEntity, 0},
	} {
		before := c.from.Bytes()
		next, got, err := c.from.Add(c.body, logs, north.sign, 100)
		var refused *witness.RequestError
		switch {
		case c.status == 0 && err != nil, c.status != 0 && !errors.As(err, &refused):
			t.Errorf("%s: %v", name, err)
		case c.status != 0 && (refused.Status != c.status || refused.Size != c.size || got != nil || !bytes.Equal(next.Bytes(), before)):
			t.Errorf("%s: %+v %q", name, refused, got)
		case c.status == 0 && bytes.Equal(next.Bytes(), before) != (name == "the same again"):
			t.Errorf("%s: it remembers %s", name, next.Bytes())
		}
		if !bytes.Equal(c.from.Bytes(), before) {
			t.Errorf("%s: the state before was changed", name)
		}
		if c.status != 0 {
			continue
		}
		signed := at(tree, map[bool]int64{true: 9, false: 12}[strings.Contains(string(c.body), "\n9\n")])
		line, at, err := signed.ParseAnswer(north.Key, got)
		if err != nil || at != 100 || !bytes.Equal(line, got) {
			t.Errorf("%s: %v %d %q", name, err, at, line)
		}
		if again, err := witness.ParseState(next.Bytes()); err != nil || !bytes.Equal(again.Bytes(), next.Bytes()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestT82StateRefused: a state from which a witness could go on to another history is refused.
func TestT82StateRefused(t *testing.T) {
	t.Parallel()
	tree := history("a", 9)
	logs := []witness.Key{log.Key}
	s, _, err := witness.State{Key: north.Key}.Add(witness.Request{Note: signedBy(at(tree, 9), 0)}.Body(), logs, north.sign, 90)
	fatal(t, err)
	good := string(s.Bytes())
	for name, bad := range map[string]string{
		"empty":               "",
		"cut off":             good[:len(good)-2],
		"without logs":        `{"key":"` + north.String() + `","schema":"countersign/witness/1"}` + "\n",
		"another schema":      strings.Replace(good, "witness/1", "witness/2", 1),
		"another key":         strings.Replace(good, north.String(), south.String(), 1),
		"a log's key":         strings.Replace(good, north.String(), log.String(), 1),
		"a smaller size":      strings.Replace(good, `\n9\n`, `\n8\n`, 1),
		"another origin":      strings.Replace(good, `"github.com/acme/app":`, `"github.com/acme/b":`, 1),
		"not signed by it":    strings.Replace(good, "— w.north.example", "— w.south.example", 1),
		"something more":      good + "\n",
		"a member more":       strings.Replace(good, `"schema"`, `"more":1,"schema"`, 1),
		"not canonical":       strings.Replace(good, `{"key"`, `{ "key"`, 1),
		"a checkpoint is not": strings.Replace(good, `"github.com/acme/app":"github`, `"github.com/acme/app":"x`, 1),
	} {
		if bad == good {
			t.Errorf("%s: it is the good one", name)
		}
		if _, err := witness.ParseState([]byte(bad)); err == nil {
			t.Errorf("%s: %s", name, bad)
		}
	}
	if _, err := witness.ParseState([]byte(good)); err != nil {
		t.Error(err)
	}
}

// TestAnswers: of what a witness answers, only its own good cosignature of this checkpoint counts.
func TestAnswers(t *testing.T) {
	t.Parallel()
	tree := history("a", 9)
	c := at(tree, 9)
	sign := func(c witness.Checkpoint, p party, when int64) []byte {
		line, err := c.Cosign(p.Key, p.sign, when)
		fatal(t, err)
		return line
	}
	good := sign(c, north, 90)
	for name, bad := range map[string][]byte{
		"nothing":            nil,
		"text":               []byte("ok\n"),
		"HTML":               []byte("<html>\n\n</html>\n"),
		"another's":          sign(c, south, 90),
		"of an older":        sign(at(tree, 8), north, 90),
		"cut off":            good[:len(good)-1],
		"the log's":          line(signedBy(c, 0), 0),
		"a note of its own":  append([]byte("x\n\n"), good...),
		"too long":           bytes.Repeat(good, 400),
		"101 lines":          append(bytes.Repeat(sign(c, south, 90), 100), good...),
		"one good, one not":  append(sign(at(tree, 8), north, 90), good...),
		"a size":             []byte("9\n"),
		"a control sequence": []byte("\x1b[31m\n"),
	} {
		if line, _, err := c.ParseAnswer(north.Key, bad); err == nil {
			t.Errorf("%s: %q", name, line)
		}
	}
	line, at, err := c.ParseAnswer(north.Key, slices.Concat(sign(c, south, 80), good, sign(c, own, 80)))
	if err != nil || at != 90 || !bytes.Equal(line, good) {
		t.Errorf("%v %d %q", err, at, line)
	}
	for _, bad := range []string{"", "9", "\n", "09\n", "-9\n", "9 \n", "9\n\n", "0x9\n", "99999999999999999999\n"} {
		if n, err := witness.ParseConflict([]byte(bad)); err == nil {
			t.Errorf("%q is %d", bad, n)
		}
	}
	if n, err := witness.ParseConflict([]byte("20852163\n")); err != nil || n != 20852163 {
		t.Errorf("%d %v", n, err)
	}
}
