package gitstore

import (
	"io"
	"strings"
	"testing"
	"time"
)

// ImpatientLocks makes a locked ref an error at once.
func ImpatientLocks(t *testing.T) {
	old := lockWait
	lockWait = 20 * time.Millisecond
	t.Cleanup(func() { lockWait = old })
}

// LimitFetches lets no pack of Fetch have more bytes, until the returned function is called.
func LimitFetches(most int64) (again func()) {
	old := fetchLimit
	fetchLimit = most
	return func() { fetchLimit = old }
}

// HoldRef has the git of a process of ours hold the lock of the ledger's ref until the process dies: what
// is written to it then ends.
func (l *Ledger) HoldRef(t *testing.T) (die func()) {
	tip, err := l.repo.tip(l.ref)
	if err != nil {
		t.Fatal(err)
	}
	in, write := io.Pipe()
	c := l.repo.command("update-ref", "--stdin")
	c.Stdin = in
	held, ended := make(chan bool), make(chan error)
	go func() {
		ended <- c.Stream(t.Context(), func(r io.Reader) error {
			said := make([]byte, len("start: ok\nprepare: ok\n"))
			_, err := io.ReadFull(r, said)
			held <- err == nil && strings.HasSuffix(string(said), "prepare: ok\n")
			return err
		})
	}()
	if _, err := io.WriteString(write, "start\nupdate "+l.ref.String()+" "+tip.String()+" "+tip.String()+"\nprepare\n"); err != nil || !<-held {
		t.Fatalf("the ref is not held: %v", err)
	}
	return func() {
		_ = write.Close()
		<-ended
	}
}
