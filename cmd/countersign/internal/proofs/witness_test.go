package proofs_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/proofs"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/pipeline/witness"
)

const origin = "github.com/acme/app"

// A party is a log or a witness with its private key.
type party struct {
	witness.Key
	sign witness.Sign
}

func newParty(t testing.TB, name string, cosigns bool) party {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	teststand.Fatal(t, err)
	k, err := witness.NewKey(name, public, cosigns)
	teststand.Fatal(t, err)
	return party{k, func(message []byte) ([]byte, error) { return ed25519.Sign(private, message), nil }}
}

func now() time.Time { return time.Unix(1_700_000_000, 0) }

// treeOf is a tree over n commits of a kind.
func treeOf(t testing.TB, kind string, n int) *witness.Tree {
	t.Helper()
	var leaves []witness.Hash
	for i := range n {
		leaves = append(leaves, witness.Leaf(fmt.Appendf(nil, "tree %s %d", kind, i)))
	}
	tree, err := witness.NewTree(leaves)
	teststand.Fatal(t, err)
	return tree
}

// logOf is a log with a checkpoint of the first n commits.
func logOf(t testing.TB, p party, tree *witness.Tree, n int64) proofs.WitnessLog {
	t.Helper()
	root, err := tree.Root(n)
	teststand.Fatal(t, err)
	c := witness.Checkpoint{Origin: p.Name(), Size: n, Root: root}
	note, err := c.SignLog(p.Key, p.sign)
	teststand.Fatal(t, err)
	return proofs.WitnessLog{Checkpoint: c, Note: note, Tree: tree}
}

// open opens a witness that knows a log.
func open(t testing.TB, file string, create bool, w, log party) *proofs.WitnessServer {
	t.Helper()
	s, err := proofs.OpenWitness(file, create, w.Key, w.sign, []witness.Key{log.Key}, now)
	teststand.Fatal(t, err)
	return s
}

// serve is a witness's address.
func serve(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL + "/"
}

// askOne asks one witness.
func askOne(t testing.TB, log proofs.WitnessLog, w party, url string, seen int64) witness.Answer {
	t.Helper()
	return log.Ask(t.Context(), 20*time.Second, []witness.Witness{{Name: "w", Key: w.Key, URL: url}}, map[string]int64{"w": seen})[0]
}

// TestAskAndServe: the two ends agree, whatever the asker thinks that the witness has seen.
func TestAskAndServe(t *testing.T) {
	t.Parallel()
	log, w := newParty(t, origin, false), newParty(t, "w.example", true)
	file := filepath.Join(t.TempDir(), "state.json")
	s := open(t, file, true, w, log)
	url := serve(t, s.Handler())
	tree := treeOf(t, "a", 30)
	for _, c := range []struct{ n, seen int64 }{{3, 0}, {3, 3}, {7, 3}, {12, 0}, {20, 7}, {20, 20}} {
		got := askOne(t, logOf(t, log, tree, c.n), w, url, c.seen)
		if got.Err != nil || got.At != now().Unix() || len(got.Line) == 0 {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	if got := askOne(t, logOf(t, log, tree, 12), w, url, 12); got.Err == nil || got.Size != 20 {
		t.Errorf("an old checkpoint: %+v", got)
	}
	if got := askOne(t, logOf(t, log, treeOf(t, "b", 30), 30), w, url, 20); got.Err == nil || !strings.HasSuffix(got.Err.Error(), "(422)") {
		t.Errorf("another history: %+v", got)
	}
	other := newParty(t, "github.com/acme/other", false)
	if got := askOne(t, logOf(t, other, tree, 3), w, url, 0); got.Err == nil || !strings.HasSuffix(got.Err.Error(), "(404)") {
		t.Errorf("another log: %+v", got)
	}
	if got := askOne(t, logOf(t, newParty(t, origin, false), tree, 25), w, url, 20); got.Err == nil || !strings.HasSuffix(got.Err.Error(), "(403)") {
		t.Errorf("another key: %+v", got)
	}
	for path, want := range map[string]int{
		"": 404, "add-checkpoint": 405, strings.Repeat("0", 64) + "/checkpoint": 404,
	} {
		resp, err := http.Get(url + path)
		if err != nil || resp.StatusCode != want {
			t.Errorf("GET %s: %v %v", path, resp, err)
		}
		resp.Body.Close()
	}
	teststand.Fatal(t, s.Close())
	// What it signed outlives the process.
	s = open(t, file, false, w, log)
	defer s.Close()
	if got := askOne(t, logOf(t, log, tree, 12), w, serve(t, s.Handler()), 12); got.Err == nil || got.Size != 20 {
		t.Errorf("after a restart: %+v", got)
	}
}

// TestMonitor: the last checkpoint is shown to whoever asks, with both signatures.
func TestMonitor(t *testing.T) {
	t.Parallel()
	log, w := newParty(t, origin, false), newParty(t, "w.example", true)
	s := open(t, filepath.Join(t.TempDir(), "state.json"), true, w, log)
	defer s.Close()
	url, tree := serve(t, s.Handler()), treeOf(t, "a", 9)
	if got := askOne(t, logOf(t, log, tree, 9), w, url, 0); got.Err != nil {
		t.Fatal(got.Err)
	}
	// printf %s github.com/acme/app | sha256sum
	resp, err := http.Get(url + "98d9fc12e0202ede77dcf03d8e2bdbefa902b35754ce1c59463a479a81f7c98d/checkpoint")
	teststand.Fatal(t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	teststand.Fatal(t, err)
	f, err := witness.ParseFile(fmt.Appendf(nil, "log %s\nwitness w %s\n", log, w))
	teststand.Fatal(t, err)
	n, err := f.Open(raw)
	if err != nil || n.Size != 9 || n.Seen["w"] != now().Unix() {
		t.Errorf("%v %+v", err, n)
	}
}

// TestState: a state is begun by who says so, held by one process, and goes with one key.
func TestState(t *testing.T) {
	t.Parallel()
	log, w := newParty(t, origin, false), newParty(t, "w.example", true)
	file := filepath.Join(t.TempDir(), "state.json")
	try := func(create bool, k witness.Key) error {
		s, err := proofs.OpenWitness(file, create, k, w.sign, []witness.Key{log.Key}, now)
		if err == nil {
			err = s.Close()
		}
		return err
	}
	if err := try(false, w.Key); !errors.Is(err, proofs.ErrNoState) {
		t.Errorf("without a state: %v", err)
	}
	s := open(t, file, true, w, log)
	if err := try(false, w.Key); !errors.Is(err, proofs.ErrLocked) {
		t.Errorf("a second process: %v", err)
	}
	teststand.Fatal(t, s.Close())
	if err := try(true, w.Key); !errors.Is(err, proofs.ErrHasState) {
		t.Errorf("begun twice: %v", err)
	}
	if err := try(false, newParty(t, "w.example", true).Key); err == nil {
		t.Error("another key goes on with the state")
	}
	if err := try(false, w.Key); err != nil {
		t.Error(err)
	}
	teststand.Fatal(t, os.WriteFile(file, []byte("{}\n"), 0o600))
	if err := try(false, w.Key); err == nil {
		t.Error("a damaged state is taken")
	}
}

// TestStateNotWritten: what cannot be kept is not signed, then or later.
func TestStateNotWritten(t *testing.T) {
	t.Parallel()
	log, w := newParty(t, origin, false), newParty(t, "w.example", true)
	dir := filepath.Join(t.TempDir(), "d")
	teststand.Fatal(t, os.Mkdir(dir, 0o700))
	s := open(t, filepath.Join(dir, "state.json"), true, w, log)
	defer s.Close()
	url, tree := serve(t, s.Handler()), treeOf(t, "a", 9)
	teststand.Fatal(t, os.Rename(dir, dir+"-away"))
	if got := askOne(t, logOf(t, log, tree, 3), w, url, 0); got.Err == nil || !strings.HasSuffix(got.Err.Error(), "500") {
		t.Errorf("%+v", got)
	}
	teststand.Fatal(t, os.Rename(dir+"-away", dir))
	if got := askOne(t, logOf(t, log, tree, 3), w, url, 0); got.Err == nil {
		t.Error("it signs again, and does not know what is on disk")
	}
}

// TestT79TwoProcesses: a witness signs one history also where its lock was taken away, as by who cleans up,
// and where its state has two names; and it vouches for nothing once its state was set back.
func TestT79TwoProcesses(t *testing.T) {
	t.Parallel()
	log, w := newParty(t, origin, false), newParty(t, "w.example", true)
	a, b := treeOf(t, "a", 9), treeOf(t, "b", 9)
	file := filepath.Join(t.TempDir(), "state.json")
	one := open(t, file, true, w, log)
	defer one.Close()
	if err := os.Symlink(file, file+"-link"); err == nil {
		if _, err := proofs.OpenWitness(file+"-link", false, w.Key, w.sign, nil, now); !errors.Is(err, proofs.ErrLocked) {
			t.Errorf("by a link: %v", err)
		}
	}
	if err := os.Remove(file + ".lock"); err != nil {
		t.Skip(err) // Windows keeps it
	}
	two := open(t, file, false, w, log)
	defer two.Close()
	old, err := os.ReadFile(file)
	teststand.Fatal(t, err)
	url := serve(t, one.Handler())
	if got := askOne(t, logOf(t, log, a, 3), w, url, 0); got.Err != nil {
		t.Fatal(got.Err)
	}
	if got := askOne(t, logOf(t, log, b, 3), w, serve(t, two.Handler()), 0); got.Err == nil || !strings.HasSuffix(got.Err.Error(), "500") {
		t.Errorf("another history is signed: %+v", got)
	}
	if got := askOne(t, logOf(t, log, a, 5), w, url, 3); got.Err != nil {
		t.Errorf("who signed last does not go on: %v", got.Err)
	}
	teststand.Fatal(t, os.WriteFile(file, old, 0o600))
	if got := askOne(t, logOf(t, log, a, 5), w, url, 5); got.Err == nil {
		t.Error("the state was set back, and it signs")
	}
}

// TestT79TwoHistoriesAtOnce: of two histories that are sent at once, and of sizes that overtake each other, a witness signs one line.
func TestT79TwoHistoriesAtOnce(t *testing.T) {
	t.Parallel()
	log, w := newParty(t, origin, false), newParty(t, "w.example", true)
	s := open(t, filepath.Join(t.TempDir(), "state.json"), true, w, log)
	defer s.Close()
	url := serve(t, s.Handler())
	trees := map[string]*witness.Tree{"a": treeOf(t, "a", 16), "b": treeOf(t, "b", 16)}
	var mu sync.Mutex
	signed := map[string]bool{}
	var done sync.WaitGroup
	for kind, tree := range trees {
		for n := int64(1); n <= 16; n++ {
			log := logOf(t, log, tree, n)
			done.Go(func() {
				if got := askOne(t, log, w, url, 0); got.Err == nil {
					mu.Lock()
					defer mu.Unlock()
					signed[kind] = true
				}
			})
		}
	}
	done.Wait()
	if len(signed) != 1 {
		t.Errorf("signed: %v", signed)
	}
}

// TestT79Liars: each is an error that says which, none repeats what was answered, and none is waited for longer than the rest.
func TestT79Liars(t *testing.T) {
	t.Parallel()
	log, w, other := newParty(t, origin, false), newParty(t, "w.example", true), newParty(t, "o.example", true)
	tree := treeOf(t, "a", 9)
	asked := logOf(t, log, tree, 9)
	cosign := func(c witness.Checkpoint, p party) []byte {
		line, err := c.Cosign(p.Key, p.sign, 90)
		teststand.Fatal(t, err)
		return line
	}
	answer := func(status int, body []byte) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(status)
			_, _ = rw.Write(body)
		}
	}
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		want string
	}{
		"another's signature":  {answer(200, cosign(asked.Checkpoint, other)), "no signature of this checkpoint"},
		"of an old checkpoint": {answer(200, cosign(logOf(t, log, tree, 8).Checkpoint, w)), "no signature of this checkpoint"},
		"of another log":       {answer(200, cosign(witness.Checkpoint{Origin: "x", Size: 9, Root: asked.Checkpoint.Root}, w)), "no signature of this checkpoint"},
		"of another history":   {answer(200, cosign(logOf(t, log, treeOf(t, "b", 9), 9).Checkpoint, w)), "no signature of this checkpoint"},
		"text":                 {answer(200, []byte("\x1b[31mok\n")), "no signature of this checkpoint"},
		"nothing":              {answer(200, nil), "no signature of this checkpoint"},
		"without end": {func(rw http.ResponseWriter, _ *http.Request) {
			for err := error(nil); err == nil; {
				_, err = rw.Write(bytes.Repeat([]byte("x"), 1<<16))
			}
		}, "too long"},
		"a conflict without size":  {answer(409, []byte("\x1b[31m\n")), "did not say how much"},
		"a conflict with its size": {answer(409, []byte("9\n")), "first this and then that"},
		"a conflict with more":     {answer(409, []byte("10\n")), "has seen 10 commits"},
		"it does not know us":      {answer(404, []byte("\x1b[31m")), "does not know this ledger"},
		"too many requests":        {answer(429, []byte("\x1b[31m")), "status 429"},
		"elsewhere": {func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, "/x", http.StatusTemporaryRedirect)
		}, "status 307"},
		"cut off": {func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Length", "99")
			_, _ = rw.Write([]byte("x"))
		}, "cannot be reached"},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, "in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := 20 * time.Second
			if name == "hangs" {
				limit = 50 * time.Millisecond
			}
			got := asked.Ask(t.Context(), limit, []witness.Witness{{Name: "w", Key: w.Key, URL: serve(t, c.h)}}, nil)[0]
			if got.Err == nil || !strings.Contains(got.Err.Error(), c.want) || strings.Contains(got.Err.Error(), "\x1b") || len(got.Line) > 0 {
				t.Errorf("%+v", got)
			}
		})
	}
	t.Run("down", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(nil)
		url := server.URL + "/"
		server.Close()
		if got := askOne(t, asked, w, url, 0); got.Err == nil || !strings.Contains(got.Err.Error(), "cannot be reached") || strings.Contains(got.Err.Error(), "add-checkpoint") {
			t.Errorf("%+v", got)
		}
		if got := askOne(t, asked, w, "", 0); got.Err == nil {
			t.Errorf("%+v", got)
		}
	})
}
