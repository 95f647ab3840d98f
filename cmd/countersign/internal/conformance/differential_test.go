package conformance

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// secondVerifier is the one beside the specification, written from its text alone.
const secondVerifier = "../../../../docs/spec/verifier/verify.py"

// TestDifferential: this program and the second verifier agree on the vectors, and on random
// ledgers, records and patches. COUNTERSIGN_DIFFERENTIAL is how many of these there are, and without it nothing is asked;
// COUNTERSIGN_SEED where they begin; COUNTERSIGN_BUNDLES is a directory to which TestT78SameVerdict of
// package gitstore wrote a ledger for each kind of tampering.
func TestDifferential(t *testing.T) {
	argv := strings.Fields(os.Getenv("COUNTERSIGN_VERIFIER"))
	if len(argv) == 0 {
		python, err := exec.LookPath("python3")
		if _, missing := os.Stat(secondVerifier); err != nil || missing != nil {
			t.Skip("without python3, or without the second verifier")
		}
		argv = []string{python, secondVerifier}
	}
	n, err := strconv.Atoi(os.Getenv("COUNTERSIGN_DIFFERENTIAL"))
	if err != nil {
		t.Skip("without COUNTERSIGN_DIFFERENTIAL")
	}
	seed := uint64(1)
	if text := os.Getenv("COUNTERSIGN_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	other := &Command{Argv: argv}
	defer func() {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}()
	vectors, err := Read(os.DirFS(vectorDir))
	teststand.Fatal(t, err)
	for _, v := range vectors {
		if !slices.Contains(wrong, v.Note) {
			agree(t, other, v.Note, v.Question())
		}
	}
	tampered(t, other)
	accepted := map[string]int{}
	asked := map[string]int{}
	for i := range n {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		what, q := anyQuestion(t, r)
		q.ID = fmt.Sprintf("random-%d-%d", seed, i)
		asked[q.Class+" "+q.Op]++
		if agree(t, other, what, q) == Accept {
			accepted[q.Class+" "+q.Op]++
		}
	}
	t.Logf("seed %d, %d questions: %v, accepted %v", seed, n, asked, accepted)
}

// tampered asks about the ledgers of COUNTERSIGN_BUNDLES, with signatures demanded and, of one in four, without.
func tampered(t *testing.T, other Verifier) {
	files, err := filepath.Glob(filepath.Join(os.Getenv("COUNTERSIGN_BUNDLES"), "*.bundle"))
	if os.Getenv("COUNTERSIGN_BUNDLES") == "" {
		return
	}
	if err != nil || len(files) == 0 {
		t.Fatal("no bundles", err)
	}
	for i, file := range files {
		raw, err1 := os.ReadFile(file)
		about, err2 := os.ReadFile(strings.TrimSuffix(file, ".bundle") + ".json")
		var doc struct{ Kind, Signers, Tip string }
		teststand.Fatal(t, errors.Join(err1, err2, json.Unmarshal(about, &doc)))
		demanded := []string{doc.Signers}
		if i%4 == 0 {
			demanded = append(demanded, "")
		}
		for _, signers := range demanded {
			input := m{"bundle": Bytes(raw)}
			if doc.Tip != "" {
				input["tip"] = doc.Tip
			}
			if signers != "" {
				input["allowed_signers"] = signers
			}
			q := question("history", "audit", input)
			q.ID = fmt.Sprintf("tampered-%d-%d", i, len(input))
			agree(t, other, doc.Kind, q)
		}
	}
	t.Logf("%d tampered ledgers", len(files))
}

// agree asks both, and returns the verdict of this program.
func agree(t *testing.T, other Verifier, what string, q Question) string {
	t.Helper()
	own, rules, err := answer(q)
	if err != nil {
		t.Errorf("%s (%s): %v", q.ID, what, err)
		return ""
	}
	its, err := other.Ask(q)
	differ := ""
	switch {
	case err != nil:
		differ = err.Error()
	case own.Verdict != its.Verdict:
		differ = its.Verdict + " " + its.Rule
	case own.Verdict == Accept:
		for name, value := range plain(own.Values).(m) {
			if !reflect.DeepEqual(its.Values[name], value) {
				have, _ := json.Marshal(its.Values[name])
				want, _ := json.Marshal(value)
				differ = fmt.Sprintf("%s %.300s, not %.300s", name, have, want)
			}
		}
	}
	if differ != "" {
		t.Errorf("%s (%s %s, %s): this program says %s %v, the other one %s", q.ID, q.Class, q.Op, what, own.Verdict, rules, shown(differ))
		if dir := os.Getenv("COUNTERSIGN_KEEP"); dir != "" {
			raw, _ := json.Marshal(q)
			_ = os.WriteFile(dir+"/"+q.ID+".json", raw, 0o666)
		}
	}
	return own.Verdict
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func question(class, op string, input m) Question {
	raw, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return Question{Class: class, Op: op, Input: raw}
}

func anyQuestion(t *testing.T, r *rand.Rand) (string, Question) {
	switch r.IntN(10) {
	case 0, 1:
		return "texts", question("patch", "diff", m{"before": anyText(r), "after": anyText(r)})
	case 2, 3:
		base, after := anyTree(r), anyTree(r)
		return "a change", question("patch", "make", m{"base": base, "after": after})
	case 4, 5:
		return anyRead(r)
	case 6:
		return anyLedger(t, r)
	}
	return anyRecord(t, r)
}

func anyText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(14) {
		fmt.Fprintf(&b, "%c\n", 'a'+r.IntN(3))
	}
	if r.IntN(5) == 0 {
		b.WriteString("end")
	}
	return b.String()
}

// anyTree has no file where there is a directory.
func anyTree(r *rand.Rand) m {
	tree := m{}
	for range r.IntN(4) {
		name := pick(r, "a", "b", "B", "é", "e\u0301", "d/a", "d/b", "D/c", "x y", `q"`, "con", "f~1", ".git/x", "ß", "SS", "z\u00a0")
		text := pick(r, "one\ntwo\n", "one\n2\n", "", "x", "\x00", anyText(r))
		if tree[name] = text; r.IntN(5) == 0 {
			tree[name] = m{"mode": "100755", "content": text}
		}
	}
	return tree
}

// anyRead is the canonical bytes of a change, with or without one byte or line that is another.
func anyRead(r *rand.Rand) (string, Question) {
	base, after := anyTree(r), anyTree(r)
	for name, file := range base {
		if r.IntN(2) == 0 {
			after[name] = file
		}
	}
	v := Vector{Input: plain(m{"base": base, "after": after}).(m)}
	got, _, _ := answer(Question{"patch", "x", v.Question().Input, "make"})
	bytes, _ := got.Values["patch"].(Bytes)
	text := string(bytes)
	what := "canonical bytes"
	if len(text) > 0 && r.IntN(4) > 0 {
		what = "canonical bytes, and a fault"
		at := r.IntN(len(text))
		lines := strings.SplitAfter(text, "\n")
		n := r.IntN(len(lines))
		switch r.IntN(5) {
		case 0:
			text = text[:at] + string(rune('a'+r.IntN(26))) + text[at+1:]
		case 1:
			text = text[:at] + text[at+1:]
		case 2:
			text = strings.Join(slices.Delete(lines, n, n+1), "")
		case 3:
			text = strings.Join(slices.Insert(lines, n, lines[r.IntN(len(lines))]), "")
		case 4:
			text = text[:at] + pick(r, " ", "\n", "\t", "+", "-", "0") + text[at:]
		}
	}
	return what, question("patch", "read", m{"base": base, "patch": Bytes(text)})
}

// lives are what random records and ledgers begin with.
var allLives = []storetest.Life{storetest.Whole, storetest.Reviewed, storetest.Asked, storetest.Given, storetest.CutOff, storetest.Retried, storetest.Stopped, storetest.Gone, storetest.Signed, storetest.Guarded, storetest.Late, storetest.Refused}

// anyRecord is a life in which one thing is another, chain and fold made good.
func anyRecord(t *testing.T, r *rand.Rand) (string, Question) {
	life := pick(r, allLives...)
	rec := lifeOf(t, life)
	what := fmt.Sprintf("life %d", life)
	for range r.IntN(3) {
		what += ", " + rec.mutate(r)
	}
	return what, question("transaction", "check", m{"id": rec.id, "files": rec.tree()})
}

// mutate changes one thing, and says what.
func (r *record) mutate(random *rand.Rand) string {
	at := random.IntN(len(r.events))
	switch random.IntN(12) {
	case 0:
		r.drop(at)
		return fmt.Sprintf("event %d dropped", at)
	case 1:
		to := random.IntN(len(r.events))
		r.events[at], r.events[to] = r.events[to], r.events[at]
		return fmt.Sprintf("events %d and %d exchanged", at, to)
	case 2:
		r.insert(at, deep(r.events[random.IntN(len(r.events))]).(m))
		return fmt.Sprintf("event %d is a copy", at)
	case 3, 4:
		names := slices.Sorted(maps.Keys(r.files))
		name := names[random.IntN(len(names))]
		var doc m
		if json.Unmarshal([]byte(r.files[name]), &doc) == nil {
			what := change(random, doc)
			if strings.HasPrefix(name, "artifacts/") {
				if raw, _ := json.Marshal(r.events); bytes.Contains(raw, []byte(name)) {
					r.rewrite(name, lineOf(doc))
				}
			} else {
				r.files[name] = lineOf(doc)
			}
			return name[:min(len(name), 24)] + ": " + what
		}
		r.files[name] += "x"
		return name[:min(len(name), 24)] + " is longer"
	}
	e := r.events[at]
	return fmt.Sprintf("%v %d: %s", e["type"], at, change(random, e["payload"].(m)))
}

// change changes one member somewhere in a document, and says which.
func change(random *rand.Rand, doc m) string {
	names := slices.Sorted(maps.Keys(doc))
	if len(names) == 0 {
		doc["x"] = "y"
		return "a member is added"
	}
	name := names[random.IntN(len(names))]
	if inner, ok := doc[name].(m); ok && random.IntN(8) > 0 {
		return name + "." + change(random, inner)
	}
	switch random.IntN(8) {
	case 0:
		delete(doc, name)
		return name + " is gone"
	case 1:
		doc[pick(random, "x", strings.ToUpper(name), "schema", "reason", "evidence", "note")] = pick[any](random, "", "y", 0, false, nil)
		return "a member is added beside " + name
	}
	switch value := doc[name].(type) {
	case string:
		doc[name] = pick(random, "", value+"x", value+" ", strings.ToUpper(value), strings.Replace(value, "a", "b", 1), strings.Replace(value, "0", "1", 1), "deny", "approve", "denied", "secret:"+value, "2026-01-05T00:00:09.000Z", "é\u200b")
	case float64:
		doc[name] = pick(random, value+1, value-1, value+0.5, -value)
	case bool:
		doc[name] = !value
	case []any:
		if doc[name] = append(slices.Clone(value), value...); random.IntN(2) == 0 {
			doc[name] = []any{}
		}
	default:
		doc[name] = pick[any](random, "x", 1, true, []any{})
	}
	return name + " is another"
}

// anyLedger is a ledger of two lives, in which one file of one commit, or its message, is another.
func anyLedger(t *testing.T, r *rand.Rand) (string, Question) {
	lives := []storetest.Life{pick(r, allLives...), pick(r, allLives...)}
	h := wholeLedgerOf(t, byte(r.IntN(256)), lives...)
	what := fmt.Sprintf("lives %v", lives)
	i := r.IntN(len(h.stages))
	s := h.stages[i]
	names := slices.Sorted(maps.Keys(s.files))
	name := names[r.IntN(len(names))]
	switch r.IntN(9) {
	case 0, 1:
		text := s.files[name]
		at := r.IntN(len(text))
		s.files[name] = text[:at] + pick(r, "x", "0", " ") + text[at+1:]
		what += ", a byte of " + name
	case 2:
		delete(s.files, name)
		what += ", without " + name
	case 3:
		s.when += int64(r.IntN(3) - 1)
		what += ", another time"
	case 4:
		at := r.IntN(len(s.message))
		s.message = s.message[:at] + pick(r, "x", "0", " ", "\n") + s.message[at+1:]
		what += ", another message"
	case 5:
		s.files[pick(r, "x", "denied/00/x", "transactions/2026/x", name+".x")] = "x\n"
		what += ", a file more"
	case 6:
		if i > 0 {
			h.stages[i], h.stages[i-1] = h.stages[i-1], h.stages[i]
			what += fmt.Sprintf(", commit %d before %d", i, i-1)
		}
	case 7:
		h.stages = slices.Delete(h.stages, i, i+1)
		what += fmt.Sprintf(", without commit %d", i)
	}
	if len(h.stages) == 0 {
		return anyLedger(t, r)
	}
	tip := h.make()
	return what, question("history", "audit", m{"bundle": h.plainBundle(tip)})
}

// plainBundle is a bundle without deltas.
func (h *ledgerHistory) plainBundle(tip string) Bytes {
	var pack bytes.Buffer
	pack.WriteString("PACK")
	_ = binary.Write(&pack, binary.BigEndian, []uint32{2, uint32(len(h.objects))})
	kinds := map[string]byte{"commit": 1, "tree": 2, "blob": 3}
	for _, id := range slices.Sorted(maps.Keys(h.objects)) {
		kind, data, _ := strings.Cut(h.objects[id], " ")
		size := len(data)
		b := kinds[kind]<<4 | byte(size&15)
		for size >>= 4; size > 0; size >>= 7 {
			pack.WriteByte(b | 0x80)
			b = byte(size & 127)
		}
		pack.WriteByte(b)
		z := zlib.NewWriter(&pack)
		_, _ = z.Write([]byte(data))
		_ = z.Close()
	}
	sum := sha1.Sum(pack.Bytes())
	pack.Write(sum[:])
	return Bytes("# v2 git bundle\n" + tip + " " + ledgerRef + "\n\n" + pack.String())
}
