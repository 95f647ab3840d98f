package gitstore

import (
	"context"
	"path/filepath"
	"time"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// manyPacks is how many packs there are before git makes few of them: an append makes one.
const manyPacks = 50

// mergePacks has git make few packs of many. A failure is no reason to fail what was being
// done: everything is there, in more files. Packs that say what others have stay as they are,
// as git before 2.47 would forget that of them.
func (r *Repo) mergePacks() {
	packfile.Sweep(r.objects.Dir, time.Now())
	dir := filepath.Join(r.objects.Dir, "pack")
	packs, _ := packfile.Files(dir, "", ".pack")
	promised, _ := packfile.Files(dir, "", ".promisor")
	if len(packs) > manyPacks && len(promised) == 0 {
		_ = r.objects.Repack(context.Background())
	}
}
