package workpaper

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/report/pagetest"
)

// TestT76OSCAL holds what evidence --out writes as OSCAL to NIST's schema of version 1.1.3:
// with every exception, with none, and whatever foreign texts say. Every id is given once, and every reference leads to one.
func TestT76OSCAL(t *testing.T) {
	packed, err := os.Open("testdata/oscal-1.1.3.json.gz")
	check(t, err)
	defer packed.Close()
	published, err := gzip.NewReader(packed)
	check(t, err)
	doc, err := jsonschema.UnmarshalJSON(published)
	check(t, err)
	c := jsonschema.NewCompiler()
	check(t, c.AddResource("oscal.json", doc))
	schema := c.MustCompile("oscal.json")
	valid := func(results map[string]any) (string, error) {
		raw, err := json.Marshal(results)
		check(t, err)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		check(t, err)
		return string(raw), schema.Validate(doc)
	}
	for _, text := range append([]string{"", "a", " \n", "[x](javascript:alert(1)) *b*"}, pagetest.HostileTexts()...) {
		if len(text) > 10_000 { // every row has each
			continue
		}
		r := evidenceOf(t, text)
		raw, err := valid(OSCAL(r, []byte("{}\n"), "1.0"))
		if err != nil {
			t.Fatalf("%.100q: %v", text, err)
		}
		if strings.Count(raw, `"state":"not-satisfied"`) != 6 || strings.Contains(raw, `"satisfied"`) || !strings.Contains(raw, `"href":"repository-1.html#row-`) {
			t.Errorf("%.100q: %s", text, raw)
		}
		if strings.Contains(raw, `"title":"[x](`) {
			t.Errorf("markup: %s", raw)
		}
		given, asked := map[string]int{}, []string{}
		identities(OSCAL(r, []byte("{}\n"), "1.0"), given, &asked)
		for id, n := range given {
			if n != 1 {
				t.Errorf("%s is given %d times", id, n)
			}
		}
		for _, id := range asked {
			if given[id] == 0 {
				t.Errorf("%s is nowhere", id)
			}
		}
	}
	none := evidence.New(evidence.Period{}, time.Unix(0, 0), nil)
	raw, err := valid(OSCAL(none, nil, "1"))
	if err != nil || strings.Contains(raw, "findings") {
		t.Errorf("%v: %s", err, raw)
	}
	wrong := OSCAL(none, nil, "1")
	delete(wrong["assessment-results"].(map[string]any), "import-ap")
	if _, err := valid(wrong); err == nil {
		t.Error("the schema takes results without a plan")
	}
}

// TestOSCALStatements: each exception speaks against a statement, which is the one that docs/evidence.md says; and what is not all is told as such.
func TestOSCALStatements(t *testing.T) {
	doc, err := os.ReadFile("../../docs/evidence.md")
	check(t, err)
	for _, code := range evidence.Codes {
		row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(kinds[code].against) + "` \\|.*$").FindString(string(doc))
		whole := slices.Contains([]evidence.Code{evidence.Unreadable, evidence.Unsound, evidence.NoLedger, evidence.BeforeLedger}, code)
		if !strings.Contains(row, "`"+string(code)+"`") && !(whole && strings.Contains(row, "those of a whole repository")) {
			t.Errorf("%s speaks against %q, and not by docs/evidence.md: %s", code, kinds[code].against, row)
		}
	}
	failed := evidence.Failed(evidence.Repository{Name: "b"}, evidence.Unreadable, "gone")
	raw, err := json.Marshal(OSCAL(evidence.New(evidence.Period{}, time.Unix(0, 0), []evidence.Part{failed}), nil, "1"))
	check(t, err)
	for _, want := range []string{`"description":"This is not all: `, `"A repository of which it cannot be told what changed."`, `"name":"complete","ns":"urn:countersign:oscal:1","value":"false"`, `"reason":"other","state":"not-satisfied"`, `"Not shown: Records of changes are kept."`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%s is not in %s", want, raw)
		}
	}
}

// evidenceOf is a report with a row of each exception and one of none, in which every foreign text is the same.
func evidenceOf(t *testing.T, text string) evidence.Report {
	p, err := evidence.ParsePeriod("2026-01-01", "2026-01-31")
	check(t, err)
	part := evidence.Part{Repository: evidence.Repository{Name: text, Read: true}, Notes: []string{text}}
	for i, code := range append([]evidence.Code{""}, evidence.Codes...) {
		row := evidence.Row{Repository: text, Branch: text, Commit: fmt.Sprintf("%040x", i), Subject: text, URL: text, Records: []evidence.Record{{Summary: text, Why: text}}}
		if code != "" {
			row.Exceptions = []evidence.Exception{{Code: code, Text: text}}
		}
		part.Rows = append(part.Rows, row)
	}
	return evidence.New(p, time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), []evidence.Part{part})
}

// identities collects the ids that a document gives, and those that it refers to.
func identities(value any, given map[string]int, asked *[]string) {
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			text, _ := v.(string)
			switch {
			case name == "uuid":
				given[text]++
			case strings.HasSuffix(name, "-uuid"):
				*asked = append(*asked, text)
			case name == "href" && strings.HasPrefix(text, "#"):
				*asked = append(*asked, text[1:])
			}
			identities(v, given, asked)
		}
	case []any:
		for _, v := range value {
			identities(v, given, asked)
		}
	}
}

// check ends a test that has an error.
var check = teststand.Fatal
