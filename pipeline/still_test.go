package pipeline_test

import (
	"context"
	"errors"
	"testing"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/code"
)

// moving is a repository whose HEAD moves each time that it is read, from the second time on.
type moving struct {
	code.Repository
	reads *int
}

func (m moving) Head(context.Context) (string, error) {
	if *m.reads++; *m.reads == 1 {
		return "", errors.New("unread")
	}
	return string(rune('a' + *m.reads)), nil
}

// TestStill: of several transactions, HEAD and each branch's Policy are those of one moment. What could not be read is no
// answer.
func TestStill(t *testing.T) {
	reads, asked := 0, map[string]int{}
	r := &pipeline.Runner{Repo: moving{reads: &reads}, Rules: func(_ context.Context, base string) (pipeline.Rules, error) {
		asked[base]++
		return pipeline.Rules{Commit: base}, nil
	}}
	still := r.Still()
	if _, err := still.Repo.Head(t.Context()); err == nil {
		t.Error("an error is remembered as an answer")
	}
	for range 3 {
		if head, err := still.Repo.Head(t.Context()); head != "c" || err != nil {
			t.Errorf("HEAD is %q, %v", head, err)
		}
		for _, base := range []string{"", "main"} {
			if rules, err := still.Rules(t.Context(), base); rules.Commit != base || err != nil {
				t.Errorf("%+v, %v", rules, err)
			}
		}
	}
	if reads != 2 || asked[""] != 1 || asked["main"] != 1 {
		t.Errorf("%d reads of HEAD, %v of Policies", reads, asked)
	}
	if head, _ := r.Repo.Head(t.Context()); head != "d" {
		t.Errorf("the Runner itself does not ask again: %q", head)
	}
}
