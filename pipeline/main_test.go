package pipeline_test

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

func TestMain(m *testing.M) {
	defer storetest.FilesInMemory(os.Getenv, os.Setenv)()
	debug.SetGCPercent(400) // a quarter of what this process did was collecting garbage
	m.Run()
}
