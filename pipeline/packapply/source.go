package packapply

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/pack"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

// readPatch reads a pack's patch.json and refuses one that is missing (AS3) or
// breaks a rule (AS4).
func readPatch(packDir string) (pack.Pack, error) {
	raw, err := readFile(packDir)
	if err != nil {
		return pack.Pack{}, err
	}
	doc, err := canon.Parse(raw)
	if err != nil {
		return pack.Pack{}, refuse("AS3", "", "invalid JSON in patch.json")
	}
	if found := pack.Verify(doc, pack.MaxBytes); len(found) > 0 {
		return pack.Pack{}, unverified(found)
	}
	return pack.Decode(doc)
}

func readFile(packDir string) ([]byte, error) {
	info, err := os.Stat(packDir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: packDir, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the pack: %w", err)
	}
	name := filepath.Join(packDir, "patch.json")
	info, err = os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, refuse("AS3", "", "pack has no patch.json")
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the pack: %w", err)
	}
	return raw, nil
}

// unverified is AS4: how many rules are broken, and then each.
func unverified(found []rule.Violation) error {
	message := fmt.Sprintf("patch verification failed: %d violations", len(found))
	out := []rule.Violation{{RuleID: "AS4", Message: message}}
	for _, v := range found {
		out = append(out, rule.Violation{RuleID: "AS4", Path: v.Path, Message: "[" + v.RuleID + "] " + v.Message})
	}
	return &refusal{message, out}
}
