package secret

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestZ(t *testing.T) {
	var x strings.Builder
	for _, p := range []string{"detect.go", "work.go", "rule.go"} {
		b, _ := os.ReadFile(p)
		x.Write(b)
	}
	for range 3 {
		b := time.Now()
		c, _ := defaults()
		set, _ := newRuleset(c)
		d1 := time.Since(b)
		f := &Finder{rules: func() *ruleset { return set }}
		b = time.Now()
		f.Text(x.String())
		d2 := time.Since(b)
		b = time.Now()
		f.Text(x.String())
		d3 := time.Since(b)
		fmt.Println(x.Len(), d1, d2, d3)
		e := set.engines.Get().(*engine)
		n := 0
		l := 0
		for i := range e.strict {
			if e.strict[i] != nil {
				n++
			}
			if e.loose[i] != nil {
				l++
			}
		}
		fmt.Println(n, l)
	}
}
func BenchmarkBuild(b *testing.B) {
	for b.Loop() {
		c, _ := defaults()
		newRuleset(c)
	}
}
func BenchmarkFirst(b *testing.B) {
	var x strings.Builder
	for _, p := range []string{"detect.go", "work.go", "rule.go"} {
		b, _ := os.ReadFile(p)
		x.Write(b)
	}
	for b.Loop() {
		b.StopTimer()
		c, _ := defaults()
		set, _ := newRuleset(c)
		f := &Finder{rules: func() *ruleset { return set }}
		b.StartTimer()
		f.Text(x.String())
	}
}
