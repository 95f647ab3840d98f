// Command verify audits a ledger in the browser: it is WebAssembly in a Web Worker,
// which is given the bytes of a Git bundle (package worker has the messages). Build it
// with
//
//	go run ./cmd/countersign/internal/verifier/build
package main
