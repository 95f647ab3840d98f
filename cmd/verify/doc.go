// Command verify audits a ledger in the browser: it is WebAssembly in a Web Worker, which answers
// the messages of a page. It has no clock, no files and no network. Build it with
//
//	go run ./cmd/countersign/internal/verifier/build
//
// To the worker:
//
//	{kind: "audit", bundle: ArrayBuffer, signers: string, tip: string}
//	{kind: "cheat", how: string}
//
// signers is the text of an allowed signers file and tip a known commit of the ledger;
// both may be "". cheat alters the ledger of the last audit in one of the ways of
// package cheat, and audits that as somebody who knows the tip that it had. From it:
//
//	{kind: "ready", ways: [{how, title, only_known}]}
//	{kind: "progress", what: string, done: number, total: number}
//	{kind: "result", result: object}                    what "countersign audit --json" prints
//	{kind: "result", result: object, changed: string}   after a cheat, and what that did
//	{kind: "error", error: string}
//
// Each message to it ends with one result or one error; nothing else is a verdict.
package main
