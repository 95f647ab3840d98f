package conformance

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// wrong are the vectors, by their notes, that this program answers otherwise than the text says.
var wrong = []string{}

// TestOwn: this program passes every vector, but for those that are known.
func TestOwn(t *testing.T) {
	r, err := Run(os.DirFS(vectorDir), Own{})
	teststand.Fatal(t, err)
	vectors, err := Read(os.DirFS(vectorDir))
	teststand.Fatal(t, err)
	for _, v := range vectors {
		fails := slices.ContainsFunc(r.Failures, func(f Failure) bool { return f.ID == v.ID })
		if known := slices.Contains(wrong, v.Note); fails != known {
			t.Errorf("%s (%s): fails %v, is known to %v", v.ID, v.Note, fails, known)
		}
	}
	if t.Failed() {
		t.Log(r.Text())
	}
	all := 0
	for _, c := range r.Classes {
		all += c.Passed + c.Failed
	}
	if all < 500 {
		t.Errorf("there are %d vectors", all)
	}
}

// requirement is one in the text.
var requirement = regexp.MustCompile(`(?m)^(?:- )?\*\*([A-Z]-[0-9]+)\*\*`)

// TestRequirements is V-16: each requirement of the text has a vector, and each vector names
// requirements of the text.
func TestRequirements(t *testing.T) {
	files, err := filepath.Glob(filepath.Dir(vectorDir) + "/*.md")
	teststand.Fatal(t, err)
	shown := map[string]bool{}
	for _, name := range append(files, vectorDir+"/README.md") {
		raw, err := os.ReadFile(name)
		teststand.Fatal(t, err)
		for _, found := range requirement.FindAllStringSubmatch(string(raw), -1) {
			if _, twice := shown[found[1]]; twice {
				t.Errorf("%s: %s is there twice", name, found[1])
			}
			shown[found[1]] = false
		}
	}
	if len(shown) < 200 {
		t.Fatalf("the text has %d requirements", len(shown))
	}
	vectors, err := Read(os.DirFS(vectorDir))
	teststand.Fatal(t, err)
	for _, v := range vectors {
		for _, id := range v.Requires {
			if _, ok := shown[id]; !ok {
				t.Errorf("%s requires %s, which is not in the text", v.ID, id)
			}
			shown[id] = true
		}
	}
	var without []string
	for id, is := range shown {
		if !is {
			without = append(without, id)
		}
	}
	slices.Sort(without)
	if len(without) > 0 {
		t.Errorf("no vector is about %s", strings.Join(without, " "))
	}
}

// TestTwins: most refused vectors have an accepted one beside them, all accepted in all are
// enough that nobody passes by refusing (V-4), and no two ask the same.
func TestTwins(t *testing.T) {
	vectors, err := Read(os.DirFS(vectorDir))
	teststand.Fatal(t, err)
	refused, twins := 0, 0
	asked := map[string]string{}
	for _, v := range vectors {
		if v.Expect.Verdict == Refuse {
			refused++
			if v.Twin != "" {
				twins++
			}
		}
		q := v.Question()
		key := q.Class + " " + q.Op + " " + string(q.Input)
		if asked[key] != "" {
			t.Errorf("%s asks what %s asks", v.ID, asked[key])
		}
		asked[key] = v.ID
	}
	t.Logf("%d vectors, %d refused, %d of them with a twin", len(vectors), refused, twins)
	if twins < refused*9/10 || len(vectors)-refused < len(vectors)/4 {
		t.Errorf("of %d vectors %d are refused, and %d of these have a twin", len(vectors), refused, twins)
	}
	size := int64(0)
	err = filepath.Walk(vectorDir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && strings.HasSuffix(info.Name(), ".jsonl") {
			size += info.Size()
		}
		return err
	})
	if err != nil || size > 6<<20 {
		t.Errorf("the vectors have %d bytes: %v", size, err)
	}
}
