package gitstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore/lineage"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/verdict"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
)

// bundle is the forged ledger, with all that the sound one has, as the bytes of a bundle.
func (f *forge) bundle() ([]byte, error) {
	if _, err := f.View(f.tip); err != nil {
		return nil, err
	}
	var objects []packfile.Object
	for _, id := range slices.Concat(slices.Collect(maps.Keys(f.objects)), f.batch.IDs()) {
		if o, err := f.View(id); err == nil {
			objects = append(objects, o)
		}
	}
	all := &packfile.Batch{}
	if _, err := all.Add(objects...); err != nil {
		return nil, err
	}
	pack, err := all.Encode()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = packfile.WriteBundle(&out, func(w io.Writer) error { _, err := w.Write(pack); return err }, packfile.Ref{Name: LedgerRef, ID: f.tip})
	return out.Bytes(), err
}

// asBundle is what the verifier in the browser says of a bundle.
func (s *soundLedger) asBundle(raw []byte, tip string) (audit.Result, error) {
	b, err := packfile.ReadBundle(bytes.NewReader(raw), int64(len(raw)), packfile.Limits{Held: 1 << 30, Made: 1 << 32})
	if err != nil {
		return audit.Result{}, err
	}
	return verdict.OfBundle(b, verdict.Question{Signers: s.signersText, Tip: tip})
}

// asRepository is what the command says of the same objects where git made them: the
// forger's own list of shallow commits, grafts and replacements is not in a bundle.
func (f *forge) asRepository(tip string) (audit.Result, error) {
	o := audit.Options{Tip: f.tip.String(), Signatures: true}
	err := lineage.Held(LedgerRef, f.tip, packfile.ParseID(tip), func(known packfile.ID) (bool, error) { return descends(f, f.tip, known) })
	var rollback *RollbackError
	if errors.As(err, &rollback) {
		o.Found = []history.Finding{{RuleID: "L14", Commit: f.tip.String(), Message: rollback.Error()}}
	}
	return page.Audit(lineage.New(f, lineage.Options{Tip: f.tip, Signers: &f.signers}), o, nil)
}

// TestT78SameVerdict: a bundle of a ledger that somebody tampered with gets the verdict
// of the repository that it was made from, to the last byte, with a tip that is known
// and, for one in four, without. By default that is each sixth kind, and all with COUNTERSIGN_BUNDLES, a directory that keeps them.
func TestT78SameVerdict(t *testing.T) {
	few := os.Getenv("COUNTERSIGN_BUNDLES") == ""
	s := newSoundLedgerOf(t, 27)
	known := s.commits[len(s.commits)-1].String()
	tried, found := 0, 0
	kinds := slices.Concat(tamperers, forgers)
	for i, k := range kinds {
		if i%6 > 0 && few {
			continue
		}
		f, what, err := s.tamper(k, 0)
		if err != nil && strings.HasSuffix(err.Error(), "could not") {
			continue // such a small ledger has no place for it
		}
		fatal(t, err)
		tried++
		raw, err := f.bundle()
		if errors.Is(err, packfile.ErrMissing) {
			continue // the tip itself is missing: there is nothing to put into a bundle
		}
		if err != nil {
			t.Fatalf("%s (%s): %v", k.name, what, err)
		}
		tips := []string{"", known}
		if tried%4 > 0 {
			tips = tips[1:]
		}
		for _, tip := range tips {
			want, err1 := f.asRepository(tip)
			got, err2 := s.asBundle(raw, tip)
			if err1 != nil || err2 != nil || text(t, got) != text(t, want) {
				t.Errorf("%s (%s), known %q:\n%v %s\nnot\n%v %s", k.name, what, tip, err2, text(t, got), err1, text(t, want))
			}
			s.keep(t, k.name, raw, tip, want)
			if tip != "" && !got.OK {
				found++
			}
		}
	}
	least := len(kinds) * 9 / 10
	if few {
		least /= 6
	}
	if tried < least || found < tried*8/10 {
		t.Errorf("of %d kinds %d were tried and %d found", len(kinds), tried, found)
	}
	clean, err := s.forge(s.steps, len(s.steps), nil)
	fatal(t, err)
	raw, err := clean.bundle()
	fatal(t, err)
	if r, err := s.asBundle(raw, known); err != nil || !r.OK || r.Signed != r.Commits || r.Commits != len(s.commits) {
		t.Errorf("the sound ledger: %+v %v", r, err)
	}
	if _, err := s.asBundle(raw, known[:39]); err == nil || !strings.Contains(err.Error(), "is not a commit: give all digits of its id") {
		t.Error(err)
	}
	if r, err := s.asBundle(raw, strings.Repeat("1", 40)); err != nil || r.OK || r.Findings[0].RuleID != "L14" {
		t.Errorf("a tip of another ledger: %+v %v", r, err)
	}
}

// keep writes a bundle and the verdict on it to the directory that COUNTERSIGN_BUNDLES names, for a
// test in a browser.
func (s *soundLedger) keep(t *testing.T, kind string, raw []byte, tip string, want audit.Result) {
	t.Helper()
	dir := os.Getenv("COUNTERSIGN_BUNDLES")
	if dir == "" {
		return
	}
	name := filepath.Join(dir, strings.ReplaceAll(kind, "/", "_")+map[bool]string{true: "", false: " known"}[tip == ""])
	doc, err := json.Marshal(map[string]any{"kind": kind, "signers": s.signersText, "tip": tip, "want": want})
	fatal(t, errors.Join(err, os.WriteFile(name+".bundle", raw, 0o666), os.WriteFile(name+".json", doc, 0o666)))
}

func text(t *testing.T, r audit.Result) string {
	out, err := json.Marshal(r)
	fatal(t, err)
	return string(out)
}
