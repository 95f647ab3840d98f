package explain

import (
	"fmt"
	"runtime"

	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// maxAhead is how many records are read at once.
const maxAhead = 64

// readAhead reads one of many things by its place. Once those are asked for in their order, it reads some that come next at the same
// time, more the longer that goes on; what nobody asks for then costs at most as much as what was.
func readAhead[T any](ids []string, read func(id string) (T, error)) func(at int) (T, error) {
	type result struct {
		value T
		err   error
	}
	var have []result
	from, n := 0, 0
	return func(at int) (T, error) {
		if at < from || at >= from+len(have) {
			if n = min(2*n, maxAhead); at != from+len(have) || n == 0 {
				n = 1
			}
			from, have = at, make([]result, min(n, len(ids)-at))
			_ = parallel.Try(4*runtime.GOMAXPROCS(0), len(have), func(i int) error { // most wait for git
				have[i].value, have[i].err = read(ids[at+i])
				return nil
			})
		}
		return have[at-from].value, have[at-from].err
	}
}

// A checked is a transaction's record as it was held to its rules.
type checked struct {
	log   *ledger.Log
	found []canon.Violation
}

// records reads those of a ledger, as its transactions are asked for.
func (j *judge) records() func(id string) (checked, error) {
	ids := make([]string, len(j.Index.entries))
	for i, e := range j.Index.entries {
		ids[i] = e.id
	}
	read := readAhead(ids, func(id string) (c checked, err error) {
		c.log, c.found, err = approval.CheckRecord(j.Ledger, id)
		return c, err
	})
	return func(id string) (checked, error) {
		at, is := j.Index.at[id]
		if !is {
			return checked{}, fmt.Errorf("%s is none of the ledger's transactions", id)
		}
		return read(at)
	}
}
