// Command verify audits a ledger in the browser: it is WebAssembly in a Web Worker,
// which is given the bytes of a Git bundle (package worker has the messages). Build it
// with
//
//	GOOS=js GOARCH=wasm go build -trimpath -ldflags "-s -w" -o verify.wasm ./cmd/verify
package main
