package storetest_test

import (
	"testing"

	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

type inMemory struct{ *storetest.Memory }

func (m inMemory) Open() writing.Store { return m.Memory }

func TestMemory(t *testing.T) {
	storetest.StoreSuite(t, func(*testing.T) storetest.Ledger { return inMemory{&storetest.Memory{}} })
}
