package lazyregexp

import "testing"

func TestNew(t *testing.T) {
	if rx := New(`^a+$`); !rx().MatchString("aa") || rx().MatchString("ab") {
		t.Error("the expression does not match what it should")
	}
	defer func() {
		if recover() == nil {
			t.Error("an expression that is not valid was not noticed in a test")
		}
	}()
	New(`(`)
}
