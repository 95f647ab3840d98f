package main

import (
	"encoding/json"
	"runtime/debug"
	"syscall/js"

	"github.com/countersign-dev/countersign/cmd/verify/internal/worker"
)

func main() {
	// All memory is one block that never gets smaller: half as much of it is worth a
	// tenth of the time.
	debug.SetGCPercent(50)
	global := js.Global()
	post := func(m worker.Message) {
		text, err := json.Marshal(m)
		if err != nil {
			panic(err)
		}
		global.Call("postMessage", global.Get("JSON").Call("parse", string(text)))
	}
	requests := make(chan worker.Request)
	global.Set("onmessage", js.FuncOf(func(_ js.Value, args []js.Value) any {
		r := request(args[0].Get("data"))
		go func() { requests <- r }()
		return nil
	}))
	w := &worker.Worker{Post: post}
	w.Ready()
	for r := range requests {
		w.Do(r)
	}
}

// request reads a message; a field that is not there is "".
func request(data js.Value) worker.Request {
	text := func(name string) string {
		if v := data.Get(name); v.Type() == js.TypeString {
			return v.String()
		}
		return ""
	}
	r := worker.Request{Kind: text("kind"), Signers: text("signers"), Tip: text("tip"), How: text("how")}
	if b := data.Get("bundle"); b.Type() == js.TypeObject {
		bytes := js.Global().Get("Uint8Array").New(b)
		r.Bundle = make([]byte, bytes.Length())
		js.CopyBytesToGo(r.Bundle, bytes)
	}
	return r
}
