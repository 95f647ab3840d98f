package pagetest_test

import (
	"embed"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/report/pagetest"
	"github.com/countersign-dev/countersign/report/template"
)

//go:embed testdata
var files embed.FS

// TestCheck: a mistake is found in a branch that is not filled in.
func TestCheck(t *testing.T) {
	set := pagetest.CheckTemplates(template.Parse(files, func(out []byte, value any) []byte { return fmt.Append(out, value) }, template.Funcs{
		"twice": func(s string) string { return s + s }, "raw": template.Raw(func(n int) int { return n }),
	}))
	type data struct {
		Name string
		List []struct{ N int64 }
		of   int
	}
	for name := range set.Trees {
		if strings.Contains(name, "/") { // the file itself
			continue
		}
		wrong := ""
		func() {
			defer func() { wrong = fmt.Sprint(recover()) }()
			set.Fill(nil, name, data{}, nil)
		}()
		if strings.HasPrefix(name, "good") != (wrong == "<nil>") || wrong != "<nil>" && !strings.HasPrefix(wrong, "pagetest: ") {
			t.Errorf("%s: %s", name, wrong)
		}
	}
	_ = data{of: 1}
}
