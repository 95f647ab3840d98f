package proofs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline/witness"
)

// witnessTimeout is how long one witness has for its answer, with all that it takes to reach it.
const witnessTimeout = 1500 * time.Millisecond

// refusal says why a witness said no, by HTTP's status. What it wrote is not repeated.
func refusal(status int) error {
	switch status {
	case http.StatusNotFound:
		return errors.New("it does not know this ledger (404)")
	case http.StatusForbidden:
		return errors.New("it does not accept the ledger's key (403)")
	case http.StatusUnprocessableEntity:
		return errors.New("it has seen another history of this ledger (422)")
	}
	return fmt.Errorf("it answered with the status %d", status)
}

// A WitnessLog is what witnesses are asked to sign: a checkpoint, as its log signed it, and the tree that it is of.
type WitnessLog struct {
	Checkpoint witness.Checkpoint
	Note       []byte
	Tree       *witness.Tree
}

// Ask asks witnesses at once, each for so long. seen is how large the tree was that each, by its name, is thought to have signed last;
// one that says otherwise is asked again from there. Of one that has seen more, the answer has how much.
func (log WitnessLog) Ask(ctx context.Context, timeout time.Duration, all []witness.Witness, seen map[string]int64) []witness.Answer {
	h := &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: witness.MostAnswer},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the address is that of somebody who is trusted, and no other is
		},
	}
	defer h.CloseIdleConnections()
	out := make([]witness.Answer, len(all))
	var done sync.WaitGroup
	for i, w := range all {
		if w.URL == "" {
			out[i] = witness.Answer{Name: w.Name, Err: errors.New("the file has no address for it")}
			continue
		}
		done.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			out[i] = log.ask(ctx, h, w, seen[w.Name])
		})
	}
	done.Wait()
	return out
}

// errSize is a witness that has seen another size than it was said to have.
var errSize = errors.New("it has seen another size")

func (log WitnessLog) ask(ctx context.Context, h *http.Client, w witness.Witness, seen int64) witness.Answer {
	a, most := witness.Answer{Name: w.Name}, log.Checkpoint.Size
	a.Err = log.add(ctx, h, w, seen, &a)
	if errors.Is(a.Err, errSize) && a.Size <= most {
		a.Err = log.add(ctx, h, w, a.Size, &a)
	}
	switch {
	case !errors.Is(a.Err, errSize):
		a.Size = 0
	case a.Size <= most:
		a.Size, a.Err = 0, errors.New("it says first this and then that of what it has seen, or others ask it as well")
	default:
		a.Err = fmt.Errorf("it has seen %d commits, more than this checkpoint has", a.Size)
	}
	return a
}

// add is one request. It fills in the cosignature or, with errSize, what the witness has seen that is not old.
func (log WitnessLog) add(ctx context.Context, h *http.Client, w witness.Witness, old int64, to *witness.Answer) error {
	proof, err := log.Tree.Consistency(old, log.Checkpoint.Size)
	if err != nil {
		return err
	}
	body := witness.Request{Old: old, Proof: proof, Note: log.Note}.Body()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL+witness.AddPath, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "countersign/"+console.Version())
	resp, err := h.Do(req)
	if err != nil {
		return plain(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, witness.MostAnswer+1))
	if err != nil {
		return plain(err)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		if to.Line, to.At, err = log.Checkpoint.ParseAnswer(w.Key, answer); err != nil {
			err = fmt.Errorf("what it answered is no signature of this checkpoint with its key: %w", err)
		}
		return err
	case http.StatusConflict:
		if to.Size, err = witness.ParseConflict(answer); err != nil {
			return errors.New("it refused, and did not say how much it has seen")
		}
		return errSize
	}
	return refusal(resp.StatusCode)
}

// plain leaves the address out of what net/http says.
func plain(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return errors.New("it did not answer in time")
	}
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return fmt.Errorf("it cannot be reached: %w", err)
}
