package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/verdict"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
)

// What a bundle may make of itself: 10,000 transactions are 220 MB in memory, and
// 1.1 GB of objects.
var limits = packfile.Limits{Held: 1 << 30, Made: 8 << 30}

// A Request is a message to the worker. The bundle is read once.
type Request struct {
	Kind    string
	Bundle  io.Reader
	Size    int64 // bytes of the bundle
	Signers string
	Tip     string
	How     string
}

// A Message is one from it.
type Message struct {
	Kind   string          `json:"kind"`
	What   string          `json:"what,omitempty"`
	Done   int             `json:"done"`
	Total  int             `json:"total"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`

	Changed string        `json:"changed,omitempty"`
	Ways    []verdict.Way `json:"ways,omitempty"`
}

// A Worker answers one request after another.
type Worker struct {
	Post func(Message)

	last    *audited
	commits int // that are in the bundle: the audit goes over a history whose length it does not know
}

// audited is the ledger that was audited last, and what its reader knew.
type audited struct {
	bundle  *packfile.Bundle
	ref     packfile.Ref
	signers string
}

// Ready says that the worker can be asked, and what.
func (w *Worker) Ready() { w.Post(Message{Kind: "ready", Ways: verdict.Ways}) }

// Do answers a request. It posts one result or one error, whatever the bytes are.
func (w *Worker) Do(r *Request) {
	defer func() {
		if wrong := recover(); wrong != nil {
			w.Post(Message{Kind: "error", Error: fmt.Sprintf("a bug in the verifier: %v", wrong)})
		}
	}()
	answer, err := w.answer(r)
	if err != nil {
		answer = Message{Kind: "error", Error: err.Error()}
	}
	w.Post(answer)
}

func (w *Worker) answer(r *Request) (Message, error) {
	switch r.Kind {
	case "audit":
		return w.audit(r)
	case "cheat":
		return w.cheat(r.How)
	}
	return Message{}, fmt.Errorf("the verifier knows no message of the kind %+q", r.Kind)
}

func (w *Worker) audit(r *Request) (Message, error) {
	w.last = nil
	if r.Bundle == nil {
		return Message{}, errors.New("no bundle was given")
	}
	within := limits
	within.Progress = w.progress
	b, err := packfile.ReadBundle(r.Bundle, r.Size, within)
	if err != nil {
		return Message{}, err
	}
	w.commits = b.Commits()
	ref, err := verdict.LedgerOf(b, "")
	if err != nil {
		return Message{}, err
	}
	found, err := verdict.OfObjects(b, ref, verdict.Question{Signers: r.Signers, Tip: r.Tip, Progress: w.progress})
	if err != nil {
		return Message{}, err
	}
	w.last = &audited{b, ref, r.Signers}
	return result(found)
}

func (w *Worker) cheat(how string) (Message, error) {
	if w.last == nil {
		return Message{}, errors.New("there is no ledger to alter: audit one first")
	}
	l := w.last
	found, changed, err := verdict.Cheat(l.bundle, l.ref, how, verdict.Question{Signers: l.signers, Progress: w.progress})
	if err != nil {
		return Message{}, err
	}
	m, err := result(found)
	m.Changed = changed
	return m, err
}

func result(found audit.Result) (Message, error) {
	raw, err := json.Marshal(found)
	return Message{Kind: "result", Result: raw}, err
}

// some is how many steps pass between two messages of progress: a message takes as long
// as reading some objects.
const some = 1000

// yields is how many steps pass until others may run. In WebAssembly nothing interrupts
// a goroutine: the garbage collector would not get on, and the heap grow to gigabytes.
const yields = 50

func (w *Worker) progress(what string, done, total int) {
	if total == 0 {
		total = max(done, w.commits)
	}
	if done%yields == 0 {
		runtime.Gosched()
	}
	if done%some == 0 || done == total {
		w.Post(Message{Kind: "progress", What: what, Done: done, Total: total})
	}
}
