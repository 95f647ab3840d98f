package cheat

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A stage is a commit of one transaction, with those after it.
type stage struct {
	commit
	after []commit
	id    string // of the transaction
	paths []string
}

// all are the commits that a change in this stage makes new.
func (s stage) all() []commit { return append([]commit{s.commit}, s.after...) }

// stage finds the latest commit that proposes something and whose paths fit.
func (c *cheat) stage(fits func(paths []string) bool) (stage, bool, error) {
	var s stage
	found, after, err := c.latest(func(at commit) (bool, error) {
		message := at.message()
		if !strings.HasPrefix(message, "review: ") && !strings.HasPrefix(message, "propose: ") {
			return false, nil
		}
		paths, err := c.added(at)
		if err != nil {
			return false, err
		}
		for _, path := range paths {
			if id, ok := ledger.TransactionOf(path); ok && fits(paths) {
				s.id, s.paths = id, paths
				return true, nil
			}
		}
		return false, nil
	})
	s.commit, s.after = found, after
	return s, s.id != "", err
}

// patchOf finds the latest patch that was recorded.
func (c *cheat) patchOf() (s stage, path string, err error) {
	isPatch := func(p string) bool { return strings.Contains(p, "/patches/") && strings.HasSuffix(p, ".diff") }
	s, ok, err := c.stage(func(paths []string) bool { return slices.ContainsFunc(paths, isPatch) })
	if err == nil && !ok {
		err = &CannotError{"this ledger has no patch that is stored as text"}
	}
	if err != nil {
		return s, "", err
	}
	return s, s.paths[slices.IndexFunc(s.paths, isPatch)], nil
}

// flipped changes one letter in the last line that a patch adds.
func flipped(patch []byte) []byte {
	out := bytes.Clone(patch)
	for i := len(out) - 1; i >= 0; i-- {
		if b := out[i]; b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' {
			out[i] ^= 1
			return out
		}
	}
	return append(out, 'x')
}

func (c *cheat) patch() error {
	s, path, err := c.patchOf()
	if err != nil {
		return err
	}
	c.changed = fmt.Sprintf("One byte of %s is another one.", path)
	return c.rewrite(s.all(), edit{path, flipped})
}

func (c *cheat) rewind() error {
	last, err := c.commit(c.tip)
	if err != nil {
		return err
	}
	if len(last.Parents) != 1 {
		return &CannotError{"this ledger has one commit alone"}
	}
	subject, _, _ := strings.Cut(last.message(), "\n")
	c.tip = last.Parents[0]
	c.changed = fmt.Sprintf("The ledger ends before its last commit, %s (%s).", last.id, subject)
	return nil
}
