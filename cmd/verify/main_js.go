package main

import (
	"encoding/json"
	"io"
	"runtime/debug"
	"syscall/js"
)

func main() {
	global := js.Global()
	post := func(m Message) {
		text, err := json.Marshal(m)
		if err != nil {
			panic(err)
		}
		global.Call("postMessage", global.Get("JSON").Call("parse", string(text)))
	}
	requests := make(chan *Request)
	global.Set("onmessage", js.FuncOf(func(_ js.Value, args []js.Value) any {
		r := request(args[0].Get("data"))
		go func() { requests <- r }()
		return nil
	}))
	w := &Worker{Post: post}
	w.Ready()
	for r := range requests {
		w.Do(r)
	}
}

// request reads a message; a field that is not there is "".
func request(data js.Value) *Request {
	text := func(name string) string {
		if v := data.Get(name); v.Type() == js.TypeString {
			return v.String()
		}
		return ""
	}
	r := &Request{Kind: text("kind"), Signers: text("signers"), Tip: text("tip"), How: text("how")}
	if b := data.Get("bundle"); b.InstanceOf(js.Global().Get("ArrayBuffer")) {
		blocks := take(b)
		r.Bundle, r.Size = blocks, blocks.size()
		// All memory is one block that never gets smaller: the more is kept, the less garbage may be in it. What is kept
		// of a bundle takes twice its size.
		debug.SetGCPercent(int(min(max(10, 100*garbage/(2*r.Size+1)), 100)))
	}
	return r
}

// garbage is how many bytes may be wasted where that is no more than what is kept.
const garbage = 48 << 20

// blocks is a file in pieces, each of which is let go of once it is read.
type blocks [][]byte

// block is how much is let go of at once.
const block = 1 << 20

// take copies a buffer, and lets go of it.
func take(buffer js.Value) *blocks {
	global := js.Global()
	all := global.Get("Uint8Array").New(buffer)
	var out blocks
	for at, n := 0, all.Length(); at < n; at += block {
		piece := make([]byte, min(block, n-at))
		js.CopyBytesToGo(piece, all.Call("subarray", at, at+len(piece)))
		out = append(out, piece)
	}
	global.Call("structuredClone", "", map[string]any{"transfer": []any{buffer}})
	return &out
}

func (b *blocks) size() (n int64) {
	for _, piece := range *b {
		n += int64(len(piece))
	}
	return n
}

// Read reads what is next.
func (b *blocks) Read(p []byte) (int, error) {
	if len(*b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*b)[0])
	if (*b)[0] = (*b)[0][n:]; len((*b)[0]) == 0 {
		(*b)[0] = nil
		*b = (*b)[1:]
	}
	return n, nil
}
