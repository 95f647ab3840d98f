package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestGittuf gives our statements to a real gittuf (v0.15.0), which COUNTERSIGN_GITTUF
// names and .ci/gittuf builds. T79: it takes what it should, and nothing that was changed.
func TestGittuf(t *testing.T) {
	program := os.Getenv("COUNTERSIGN_GITTUF")
	if program == "" {
		t.Skip("COUNTERSIGN_GITTUF names no program")
	}
	params := scripts(t, "testdata/gittuf")
	setup := params.Setup
	params.Setup = func(e *testscript.Env) error {
		e.Setenv("GITTUF", program)
		return setup(e)
	}
	testscript.Run(t, params)
}
