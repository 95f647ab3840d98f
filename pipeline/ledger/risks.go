package ledger

import (
	"cmp"

	"github.com/countersign-dev/countersign/pipeline/format"
)

// A risksDoc is the artifact of kind KindRisks, as package risk writes it.
type risksDoc struct {
	Schema  string         `json:"schema"`
	PatchID string         `json:"patch_id"`
	More    map[string]int `json:"more"`
	Risks   []riskEntry    `json:"risks"`
}

type riskEntry struct {
	Kind   string `json:"kind"`
	Path   string `json:"path"`
	From   string `json:"from,omitempty"`
	Lines  []int  `json:"lines,omitempty"`
	More   int    `json:"more,omitempty"`
	Detail string `json:"detail,omitempty"`
}

func parseRisks(raw []byte) (doc risksDoc, err error) {
	return doc, format.Unmarshal("it", raw, &doc)
}

// riskTitles say what a kind of risk means, in few words.
var riskTitles = map[string]string{
	"unlisted": "not listed", "executable": "becomes executable", "trusted": "steers automation", "build": "builds or installs",
	"secret": "secret", "protected": "protected", "binary": "binary", "delete": "deleted", "rename": "renamed",
	"mode": "executable no more", "whitespace": "white space only", "long": "long lines", "hidden": "hidden characters",
	"lookalike": "look-alike letters", "generated": "generated",
}

// RiskTitle says what a kind of risk means, in few words.
func RiskTitle(kind string) string { return cmp.Or(riskTitles[kind], "of unknown kind") }

// KnownRisk reports whether a kind of risk is one that this program knows.
func KnownRisk(kind string) bool { return riskTitles[kind] != "" }
