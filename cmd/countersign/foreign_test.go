package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestGittuf gives our statements to a real gittuf (v0.15.0), which COUNTERSIGN_GITTUF
// names and .ci/foreign builds. T79: it takes what it should, and nothing that was changed.
func TestGittuf(t *testing.T) { otherProgram(t, "COUNTERSIGN_GITTUF", "testdata/gittuf") }

// TestCosign does the same with a real cosign (v3.1.1), which COUNTERSIGN_COSIGN names.
func TestCosign(t *testing.T) { otherProgram(t, "COUNTERSIGN_COSIGN", "testdata/cosign") }

// otherProgram runs scripts that are told where another's program is.
func otherProgram(t *testing.T, variable, dir string) {
	program := os.Getenv(variable)
	if program == "" {
		t.Skip(variable + " names no program")
	}
	params := scripts(t, dir)
	setup := params.Setup
	params.Setup = func(e *testscript.Env) error {
		e.Setenv(variable, program)
		return setup(e)
	}
	testscript.Run(t, params)
}
