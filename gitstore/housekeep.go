package gitstore

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	if len(packs) <= manyPacks || len(promised) > 0 {
		return
	}
	if done, alone := r.lockGC(); alone {
		_ = r.objects.Repack(context.Background())
		done()
	}
}

// lockGC keeps every "git gc" away, and says whether none is at work, by git's own protocol: of two that repack at once,
// each may remove a pack that has what the other relies on.
func (r *Repo) lockGC() (done func(), alone bool) {
	pid := filepath.Join(r.gitDir, "gc.pid")
	lock, err := os.OpenFile(pid+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, false
	}
	host, err := os.Hostname()
	if err == nil {
		_, err = fmt.Fprintf(lock, "%d %s", os.Getpid(), host)
	}
	if _, working := os.Lstat(pid); errors.Join(err, lock.Close()) != nil || working == nil || os.Rename(pid+".lock", pid) != nil {
		_ = os.Remove(pid + ".lock")
		return nil, false
	}
	return func() { _ = os.Remove(pid) }, true
}
