package canon_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

// BenchmarkCanon reads and writes a document of 1,000 objects. The metric
// x-encoding/json is how much longer that takes than with the standard library,
// which sorts keys by byte, escapes otherwise and lets duplicate keys through.
func BenchmarkCanon(b *testing.B) {
	var list []any
	for i := range 1000 {
		list = append(list, map[string]any{
			"op": "create", "path": fmt.Sprintf("dir%d/file%d.go", i%10, i), "order": float64(i), "size_bytes": 0.5 * float64(i),
			"content": "package main\n\nfunc main() { println(\"é\") }\n", "more": []any{nil, true, "x"},
		})
	}
	data, err := json.Marshal(map[string]any{"operations": list})
	fatal(b, err)
	b.SetBytes(int64(len(data)))
	var ours, theirs time.Duration
	for b.Loop() {
		began := b.Elapsed()
		doc, err := canon.Parse(data)
		fatal(b, err)
		if _, err := canon.Line(doc); err != nil {
			b.Fatal(err)
		}
		between := b.Elapsed()
		var other any
		fatal(b, json.Unmarshal(data, &other))
		if _, err := json.Marshal(other); err != nil {
			b.Fatal(err)
		}
		ours += between - began
		theirs += b.Elapsed() - between
	}
	b.ReportMetric(float64(ours)/float64(theirs), "x-encoding/json")
}
