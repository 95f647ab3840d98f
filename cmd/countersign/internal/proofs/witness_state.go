package proofs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline/atomicfile"
	"github.com/countersign-dev/countersign/pipeline/witness"
)

// A WitnessServer is a witness. Its state is in one file, which one process has.
type WitnessServer struct {
	logs []witness.Key
	sign witness.Sign
	now  func() time.Time
	file string
	lock io.Closer

	mu     sync.Mutex
	state  witness.State
	broken error // the file is not known to be what state is: nothing is signed any more
}

// Why a state does not open. Nobody but a person may begin one: a witness that forgot what it signed would
// sign another history.
var (
	ErrNoState  = &console.UsageError{Message: "there is no state", Hint: "--init makes it, for a witness that has signed nothing yet"}
	ErrHasState = &console.UsageError{Message: "there is a state already", Hint: "leave out --init"}
	ErrLocked   = &console.UsageError{Message: "another process has the state", Hint: "one witness has one process: end the other first"}
)

// OpenWitness opens a witness that signs checkpoints of these logs. create makes the state, and else it must be there, and be this key's.
func OpenWitness(file string, create bool, k witness.Key, sign witness.Sign, logs []witness.Key, now func() time.Time) (*WitnessServer, error) {
	// One state has one lock, by whatever links it is named.
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	s := &WitnessServer{logs: logs, sign: sign, now: now, file: file}
	var err error
	if s.lock, err = lock(file + ".lock"); err != nil {
		return nil, err
	}
	if err := s.open(create, k); err != nil {
		return nil, errors.Join(err, s.lock.Close())
	}
	return s, nil
}

func (s *WitnessServer) open(create bool, k witness.Key) error {
	raw, err := os.ReadFile(s.file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && create:
		s.state = witness.State{Key: k, Logs: map[string][]byte{}}
		return atomicfile.Write(s.file, s.state.Bytes())
	case errors.Is(err, fs.ErrNotExist):
		return ErrNoState
	case err != nil:
		return err
	case create:
		return ErrHasState
	}
	if s.state, err = witness.ParseState(raw); err == nil && s.state.Key != k {
		err = errors.New("it is the state of another witness: the name or the key differs")
	}
	return err
}

// Close gives the state back.
func (s *WitnessServer) Close() error { return s.lock.Close() }

// Handler answers add-checkpoint, and shows the last checkpoint of a log.
func (s *WitnessServer) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /"+witness.AddPath, s.add)
	mux.HandleFunc("GET /{hash}/checkpoint", s.checkpoint)
	return mux
}

func (s *WitnessServer) add(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, witness.MostRequest))
	if err != nil {
		http.Error(w, "the request is too long, or was cut off", http.StatusBadRequest)
		return
	}
	line, err := s.decide(body)
	var refused *witness.RequestError
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusConflict:
		w.Header().Set("Content-Type", "text/x.tlog.size")
		w.WriteHeader(refused.Status)
		_, _ = w.Write(strconv.AppendInt(nil, refused.Size, 10))
		_, _ = w.Write([]byte("\n"))
	case errors.As(err, &refused):
		http.Error(w, refused.Why, refused.Status)
	case err != nil:
		http.Error(w, "the witness cannot keep what it signs", http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write(line)
	}
}

// decide takes one request after the other: what was signed last, and that it is on disk, is one step.
func (s *WitnessServer) decide(body []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return nil, s.broken
	}
	next, line, err := s.state.Add(body, s.logs, s.sign, s.now().Unix())
	if err != nil {
		return nil, err
	}
	// The lock keeps out who asks for it. Where the file is not what was written last, another process has
	// signed something, or the file was set back: then this one does not know what the witness signed.
	if raw, err := os.ReadFile(s.file); err != nil || !bytes.Equal(raw, s.state.Bytes()) {
		s.broken = errors.Join(errors.New("the state on disk is not what this process wrote"), err)
		return nil, s.broken
	}
	if bytes.Equal(next.Bytes(), s.state.Bytes()) {
		return line, nil
	}
	if err := atomicfile.Write(s.file, next.Bytes()); err != nil {
		s.broken = fmt.Errorf("writing the state: %w", err)
		return nil, s.broken
	}
	s.state = next
	return line, nil
}

func (s *WitnessServer) checkpoint(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for origin, raw := range s.state.Logs {
		if sum := sha256.Sum256([]byte(origin)); hex.EncodeToString(sum[:]) == r.PathValue("hash") {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = w.Write(raw)
			return
		}
	}
	http.NotFound(w, r)
}
