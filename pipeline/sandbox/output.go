package sandbox

import (
	"io"
	"os"
	"time"
)

// grace is how long a pipe is read after the command has been killed: some
// process outside our reach may hold it open for ever.
const grace = 2 * time.Second

// An output reads one stream of a command: it keeps the first bytes and goes on
// reading, so that a full pipe never stops the command.
type output struct {
	r     *os.File
	limit int64
	kept  []byte
	total int64
	done  chan struct{}
}

func newOutput(limit int64) (*output, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return &output{r: r, limit: limit, done: make(chan struct{})}, w, nil
}

// drain reads until every writer is gone or the deadline of finish has passed.
func (o *output) drain() {
	defer close(o.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := o.r.Read(buf)
		o.kept = append(o.kept, buf[:min(int64(n), o.limit-int64(len(o.kept)))]...)
		o.total += int64(n)
		if err != nil {
			return
		}
	}
}

// finish waits for the end of the stream, but not for long.
func (o *output) finish() {
	_ = o.r.SetReadDeadline(time.Now().Add(grace))
	<-o.done
	_ = o.r.Close()
}

func (o *output) truncated() bool { return o.total > int64(len(o.kept)) }

func closeAll(files ...io.Closer) {
	for _, f := range files {
		_ = f.Close()
	}
}
