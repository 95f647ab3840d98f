package gitstore

import (
	"context"
	"time"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// manyPacks is how many packs there are before few are made of them: an append makes one.
const manyPacks = 50

// mergePacks makes few packs of many. A failure is no reason to fail what was being done: everything is there, in more
// files.
func (r *Repo) mergePacks() {
	packfile.Sweep(r.objects.Dir, time.Now())
	_ = r.objects.Merge(context.Background(), manyPacks)
}
