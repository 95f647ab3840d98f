package page

import (
	"errors"
	"io/fs"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/signed"
)

// CodeKeys reads keys out of the trees of commits, an error being one that is not here. The
// browser has none of them, and so is not linked with what reads a Policy's file.
func CodeKeys(code func(commit string) (fs.FS, error)) audit.KeyReader {
	return func(commit string, p policy.Policy) (signed.Keys, bool) {
		tree, err := code(commit)
		if err != nil {
			return signed.Keys{}, false
		}
		keys := approval.ReadKeys(tree, p)
		switch there, _, err := policy.Read(tree); {
		case err != nil:
			keys.Err = err
		case there.Approvals.Keys != p.Approvals.Keys || there.Approvals.ForgeKeys != p.Approvals.ForgeKeys || there.Approvals.Passkeys != p.Approvals.Passkeys:
			keys.Err = errors.New("the Policy there names other keys than the recorded one")
		}
		return keys, true
	}
}
