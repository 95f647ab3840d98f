package pipeline_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/review"
)

// ownWords are the words, hashes and days of a record that are long enough to be known as a secret: of its members' names
// and values, and of the Policy in it.
func (w *world) ownWords(tx string) []string {
	w.Helper()
	dir := w.directory(tx)
	words := map[string]bool{}
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(name, ".json") {
			return err
		}
		raw, err := fs.ReadFile(dir, name)
		for _, word := range regexp.MustCompile(`[0-9a-f]{64}|[0-9]{4}-[0-9]{2}-[0-9]{2}|[a-zA-Z_-]{6,}`).FindAllString(string(raw), -1) {
			words[word] = true
		}
		return err
	})
	fatal(w, err)
	return slices.Sorted(maps.Keys(words))
}

// live takes a patch from its proposal on a pull request to its end.
func (h *hub) live(diff string) (tx string, err error) {
	tx, patchID := "", ""
	in, err := pull.ChangeFor(h.w.Context(), h.runner(), h.w.input(diff), 7)
	if err != nil {
		return "", err
	}
	done, err := review.Run(h.w.Context(), h.runner(), in, false)
	if err != nil {
		return "", err
	}
	tx, patchID = done.ID, done.PatchID
	r := h.runner().With(done.Learnt)
	if _, err = r.Gate(h.w.Context(), tx); err != nil {
		return tx, err
	}
	h.says(adaThere, "/approve patchset:"+patchID)
	h.says(adaThere, "/approve secret:patchset:"+patchID)
	g, err := r.Gate(h.w.Context(), tx)
	if err != nil {
		return tx, err
	}
	if _, err = r.Apply(h.w.Context(), g, pipeline.ApplyOptions{}); err != nil {
		return tx, err
	}
	_, err = r.Validate(h.w.Context(), tx)
	return tx, err
}

// TestT48OwnWordsAreNoSecrets: a patch may hold as a password whatever word the record itself is made of: its change
// is recorded, decided on, applied and proved like any other; or, for a word that is recorded as a text (of the Policy, of
// decisions), nothing is recorded at all. The word is in no text of the record.
// Each fifteenth is tried; all of them with COUNTERSIGN_LONG.
func TestT48OwnWordsAreNoSecrets(t *testing.T) {
	h := newHub(newWorld(t))
	tx, err := h.live(fix)
	fatal(t, err)
	words := h.w.ownWords(tx)
	if len(words) < 80 {
		t.Fatalf("only %v", words)
	}
	words = slices.DeleteFunc(words, func(word string) bool { return word == "example" || word == "secret" }) // no rule takes these
	for i, word := range words {
		if os.Getenv("COUNTERSIGN_LONG") == "" && i%15 != 0 {
			continue
		}
		t.Run(word, func(t *testing.T) {
			h := newHub(newWorld(t))
			tx, err := h.live(strings.Replace(fix, "+new\n", "+postgres://shop:"+word+"@db.example.org/shop\n", 1))
			if errors.As(err, new(*redact.FoundError)) {
				if h.w.tip() != "" || word != "patchset" && !strings.Contains(string(h.w.policy.JSON()), word) {
					t.Errorf("refused: %v; the ledger is at %s", err, h.w.tip())
				}
				return
			}
			fatal(t, err)
			h.w.sound(tx, ledger.Completed)
			tree := h.w.ledger().Tree
			if _, found, err := approval.CheckRecord(tree, tx); err != nil || len(found) > 0 {
				t.Errorf("%v %v", found, err)
			}
			log, err := lookup.Read(tree, tx)
			fatal(t, err)
			diff, err := ledger.ReadFile(tree, tx, ledger.PatchFile(log.Transaction().PatchID()))
			if err != nil || !strings.Contains(string(diff), "shop:<REDACTED:") {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}
