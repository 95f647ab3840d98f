// Package worker answers the messages of a page that verifies a ledger. The page runs
// it in a Web Worker, as WebAssembly; it has no clock, no files and no network.
//
// To the worker:
//
//	{kind: "audit", bundle: ArrayBuffer, signers: string, tip: string}
//
// signers is the text of an allowed signers file and tip a known commit of the ledger;
// both may be "". From it:
//
//	{kind: "ready"}
//	{kind: "progress", what: string, done: number, total: number}
//	{kind: "result", result: object}      what "countersign audit --json" prints
//	{kind: "error", error: string}
//
// Each message to it ends with one result or one error; nothing else is a verdict.
package worker

import (
	"encoding/json"
	"fmt"

	"github.com/countersign-dev/countersign/gitstore/bundle"
	"github.com/countersign-dev/countersign/gitstore/verdict"
)

// What a bundle may make of itself: 10,000 transactions are 220 MB in memory, and
// 1.1 GB of objects.
var limits = bundle.Limits{Held: 1 << 30, Made: 8 << 30}

// A Request is a message to the worker.
type Request struct {
	Kind    string
	Bundle  []byte
	Signers string
	Tip     string
}

// A Message is one from it.
type Message struct {
	Kind   string          `json:"kind"`
	What   string          `json:"what,omitempty"`
	Done   int             `json:"done"`
	Total  int             `json:"total"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// A Worker answers one request after another.
type Worker struct {
	Post func(Message)
}

// Do answers a request. It posts one result or one error, whatever the bytes are.
func (w *Worker) Do(r Request) {
	defer func() {
		if wrong := recover(); wrong != nil {
			w.Post(Message{Kind: "error", Error: fmt.Sprintf("a bug in the verifier: %v", wrong)})
		}
	}()
	result, err := w.answer(r)
	if err != nil {
		w.Post(Message{Kind: "error", Error: err.Error()})
		return
	}
	w.Post(Message{Kind: "result", Result: result})
}

func (w *Worker) answer(r Request) (json.RawMessage, error) {
	if r.Kind != "audit" {
		return nil, fmt.Errorf("the verifier knows no message of the kind %q", r.Kind)
	}
	within := limits
	within.Progress = func(done, total int) { w.progress("objects", done, total) }
	b, err := bundle.Read(r.Bundle, within)
	if err != nil {
		return nil, err
	}
	found, err := verdict.OfBundle(b, verdict.Question{Signers: r.Signers, Tip: r.Tip, Progress: w.progress})
	if err != nil {
		return nil, err
	}
	return json.Marshal(found)
}

// some is how many steps pass between two messages of progress: a message takes as long
// as reading some objects.
const some = 1000

func (w *Worker) progress(what string, done, total int) {
	if done%some == 0 || done == total {
		w.Post(Message{Kind: "progress", What: what, Done: done, Total: total})
	}
}
