package statements

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report"
)

// kept verifies the statements of the commit that are kept beside the ledger. Whoever can write
// there can put anything: what nobody signed who is believed is passed over.
func (v verifier) kept(ctx context.Context, trust trust) error {
	local, err := v.s.OpenLedger()
	if err != nil {
		return err
	}
	found, err := local.Kept(ctx, gitstore.Attestations, func(name string) bool {
		return strings.Split(path.Base(name), ".")[1] == v.commit
	})
	if err != nil {
		return err
	}
	docs, ignored, text := []any{}, []any{}, ""
	var failed []error
	complete := true
	for _, name := range slices.Sorted(maps.Keys(found.Files)) {
		shown := report.Clean(path.Base(name))
		raw := found.Files[name]
		err := error(nil)
		if !strings.HasSuffix(name, "."+canon.Hex(raw)+".json") {
			err = errors.New("its content is not what its name says")
		}
		var signed signedStatement
		if err == nil {
			signed, err = trust.open(ctx, raw)
		}
		if err == nil {
			v.stated = signed.Statement
			subject, problem := v.subject(ctx)
			if problem != nil {
				return problem
			}
			if subject.Outcome != explain.Good { // a name is nobody's word
				err = errors.New(subject.Message)
			}
		}
		if unasked(err) {
			return err
		}
		if err != nil {
			why := ledger.OneLine(err.Error(), 300)
			ignored = append(ignored, map[string]any{"file": name, "reason": why})
			text += fmt.Sprintf("%s counts for nothing: %s\n", shown, report.Clean(why))
			continue
		}
		done, err := v.verify(ctx, shown, signed)
		if err != nil {
			return err
		}
		doc := done.document()
		doc["file"] = name
		complete = complete && doc["complete"].(bool)
		docs, text, failed = append(docs, doc), text+done.text(), append(failed, done.err())
	}
	if len(docs) == 0 {
		why := "no statement of it is kept beside the ledger"
		if len(ignored) > 0 {
			why = report.Counted(len(ignored), "statement") + " kept beside the ledger, and none has a signature that counts"
		}
		failed = append(failed, fault.Fail(fmt.Sprintf("commit %.12s does not verify: %s", v.commit, why), "countersign sync"))
	}
	err = errors.Join(failed...)
	return errors.Join(v.s.Result(console.Document{"ok": err == nil, "complete": complete && len(docs) > 0, "commit": v.commit, "statements": docs, "ignored": ignored}, text), err)
}
