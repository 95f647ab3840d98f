package explain

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A Clock notes, while an audit reads a ledger through it, in which order transactions were
// recorded. What an event says of its time can be wrong or made up: who sets their clock back
// can record something new with a time of long ago. But nothing was recorded before what is before it in
// the ledger's history, and so not before the latest time that anything there has (T56).
type Clock struct {
	history.Reader
	mu   sync.Mutex
	seen []tick
}

// A tick is one commit of the ledger: the transactions that it is about, and the one whose result it brings.
type tick struct {
	age    int
	when   int64
	ids    []string
	result string
	denied []string // directories of denials
}

// NewClock notes what is read of a ledger.
func NewClock(r history.Reader) *Clock { return &Clock{Reader: r} }

// Commits is history.Reader's.
func (c *Clock) Commits(visit func(history.Commit)) error {
	c.mu.Lock()
	c.seen = nil
	c.mu.Unlock()
	return c.Reader.Commits(func(one history.Commit) {
		t := tick{age: one.Age, when: one.When}
		for _, change := range one.Changes {
			// transactions/YYYY/MM/DD/XX/ID/…
			parts := strings.Split(change.Path, "/")
			switch {
			case ledger.IsDenial(change.Path):
				t.denied = append(t.denied, path.Dir(change.Path))
			case len(parts) > 6 && parts[0] == "transactions":
				if !slices.Contains(t.ids, parts[5]) {
					t.ids = append(t.ids, parts[5])
				}
				if parts[6] == ledger.ResultFile {
					t.result = parts[5]
				}
			}
		}
		c.mu.Lock()
		c.seen = append(c.seen, t)
		c.mu.Unlock()
		visit(one)
	})
}

// A recorded transaction was not recorded before From, and what was last added to it not
// before To. End is the place in the history of its result, or, without one, of what was last added to it.
type recorded struct {
	from, to time.Time
	result   bool
	end      int
}

// transactions are those of the ledger in the order in which they were first recorded. By their directory, denied has
// the place in the history of the first denial of each patch that somebody denied.
func (c *Clock) transactions() (order []string, at map[string]recorded, denied map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ticks := slices.Clone(c.seen)
	slices.SortFunc(ticks, func(a, b tick) int { return cmp.Compare(b.age, a.age) })
	at, denied = map[string]recorded{}, map[string]int{}
	var latest int64
	for n, t := range ticks {
		latest = max(latest, t.when)
		now := time.Unix(latest, 0).UTC()
		for _, id := range t.ids {
			known, is := at[id]
			if !is {
				known.from = now
				order = append(order, id)
			}
			known.to = now
			if !known.result {
				known.end, known.result = n, t.result == id
			}
			at[id] = known
		}
		for _, dir := range t.denied {
			if _, is := denied[dir]; !is {
				denied[dir] = n
			}
		}
	}
	return order, at, denied
}

// check is an error unless the history has a transaction.
func (r recorded) check(id string) error {
	if r.from.IsZero() {
		return &ledger.CorruptError{ID: id, Err: fmt.Errorf("no commit of the ledger was seen to record it")}
	}
	return nil
}
