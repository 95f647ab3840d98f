package pages

import (
	"io/fs"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/report/html"
)

// Alone makes the page of a transaction of a ledger's files as one file, with what breaks its record's rules on top. Where something in
// a diff looks like a secret it is left out, and masked is true.
func Alone(tree fs.FS, id string, o html.Options, masks func(diff []byte) bool) (page string, t html.Transaction, masked bool, err error) {
	var reader html.Reader
	if t, err = reader.Read(tree, id); err != nil {
		return "", t, false, err
	}
	_, found, err := approval.CheckRecord(tree, id)
	if err != nil {
		return "", t, false, err
	}
	for _, v := range found {
		t = t.With(history.Finding{RuleID: v.RuleID, Path: v.Path, Message: v.Message})
	}
	masked = masks(t.Patch)
	if n := len(t.Supersedes); n > 0 {
		if earlier, err := reader.Read(tree, t.Supersedes[n-1]); err == nil {
			o.Earlier = &earlier
			masked = masked || masks(earlier.Patch) // the page has what the two differ in
		}
	}
	o.Alone, o.Redact = true, o.Redact || masked
	var out strings.Builder
	err = t.Write(&out, o)
	return out.String(), t, masked, err
}
