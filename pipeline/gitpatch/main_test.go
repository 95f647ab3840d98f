package gitpatch_test

import (
	"os"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

// TestMain has the repositories of the tests in memory: on a disk they take twice as long.
func TestMain(m *testing.M) {
	defer storetest.FilesInMemory(os.Getenv, os.Setenv)()
	m.Run()
}
