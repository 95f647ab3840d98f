package rest_test

import (
	"errors"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
)

// An answer is kept until Clear, an error is not, and no answer is another key's.
func TestMemory(t *testing.T) {
	var m rest.Memory[string, int]
	asked := 0
	get := func(key string, answer int, problem error) (int, error) {
		return m.Get(key, func() (int, error) { asked++; return answer, problem })
	}
	for _, step := range []struct {
		key           string
		answer        int
		problem       error
		want, inTotal int
	}{
		{"ada", 7, errors.New("no answer"), 0, 1}, {"ada", 1, nil, 1, 2}, {"ada", 2, nil, 1, 2}, {"bob", 3, nil, 3, 3}, {"ada", 4, errors.New("no answer"), 1, 3},
	} {
		got, err := get(step.key, step.answer, step.problem)
		if got != step.want || asked != step.inTotal || (err != nil) != (step.want == 0) {
			t.Errorf("%+v: %d, %v, asked %d times", step, got, err, asked)
		}
	}
	m.Clear()
	if got, err := get("ada", 5, nil); got != 5 || err != nil {
		t.Errorf("after Clear: %d, %v", got, err)
	}
}
