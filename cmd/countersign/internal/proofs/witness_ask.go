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

// An AheadError is a witness that has seen more than it is asked to sign.
type AheadError struct{ Size int64 }

func (e *AheadError) Error() string {
	return fmt.Sprintf("it has seen %d commits, more than this checkpoint has", e.Size)
}

// A WitnessLog is what witnesses are asked to sign: a checkpoint, as its log signed it, and the tree that it is of.
type WitnessLog struct {
	Checkpoint witness.Checkpoint
	Note       []byte
	Tree       *witness.Tree
}

// A WitnessAnswer is what came of asking one witness.
type WitnessAnswer struct {
	witness.Cosignature
	Err error
}

// Ask asks witnesses at once, each for so long. seen is how large the tree was that each, by its name, is thought to have signed last;
// one that says otherwise is asked again from there, or has seen more: *AheadError.
func (log WitnessLog) Ask(ctx context.Context, timeout time.Duration, all []witness.Witness, seen map[string]int64) []WitnessAnswer {
	h := &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: witness.MostAnswer},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the address is that of somebody who is trusted, and no other is
		},
	}
	defer h.CloseIdleConnections()
	out := make([]WitnessAnswer, len(all))
	var done sync.WaitGroup
	for i, w := range all {
		if w.URL == "" {
			out[i].Err = errors.New("the file has no address for it")
			continue
		}
		done.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			out[i].Cosignature, out[i].Err = log.ask(ctx, h, w, seen[w.Name])
		})
	}
	done.Wait()
	return out
}

func (log WitnessLog) ask(ctx context.Context, h *http.Client, w witness.Witness, seen int64) (witness.Cosignature, error) {
	signed, err := log.add(ctx, h, w, seen)
	var ahead *AheadError
	if !errors.As(err, &ahead) || ahead.Size > log.Checkpoint.Size {
		return signed, err
	}
	if signed, err = log.add(ctx, h, w, ahead.Size); errors.As(err, &ahead) && ahead.Size <= log.Checkpoint.Size {
		err = errors.New("it says first this and then that of what it has seen, or others ask it as well")
	}
	return signed, err
}

// add is one request. Another size than old is an *AheadError.
func (log WitnessLog) add(ctx context.Context, h *http.Client, w witness.Witness, old int64) (witness.Cosignature, error) {
	var none witness.Cosignature
	proof, err := log.Tree.Consistency(old, log.Checkpoint.Size)
	if err != nil {
		return none, err
	}
	body := witness.Request{Old: old, Proof: proof, Note: log.Note}.Body()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL+witness.AddPath, bytes.NewReader(body))
	if err != nil {
		return none, err
	}
	req.Header.Set("User-Agent", "countersign/"+console.Version())
	resp, err := h.Do(req)
	if err != nil {
		return none, plain(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, witness.MostAnswer+1))
	if err != nil {
		return none, plain(err)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		signed, err := log.Checkpoint.ParseAnswer(w.Key, answer)
		if err != nil {
			err = fmt.Errorf("what it answered is no signature of this checkpoint with its key: %w", err)
		}
		return signed, err
	case http.StatusConflict:
		size, err := witness.ParseConflict(answer)
		if err != nil {
			return none, errors.New("it refused, and did not say how much it has seen")
		}
		return none, &AheadError{size}
	}
	return none, refusal(resp.StatusCode)
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
