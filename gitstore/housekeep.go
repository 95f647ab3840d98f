package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	now := time.Now()
	packfile.Sweep(r.objects.Dir, now)
	dir := filepath.Join(r.objects.Dir, "pack")
	packs, _ := packfile.Files(dir, "", ".pack")
	promised, _ := packfile.Files(dir, "", ".promisor")
	if len(packs) <= manyPacks || len(promised) > 0 {
		return
	}
	if done, alone := r.lockGC(now); alone {
		_ = r.objects.Repack(context.Background())
		done()
	}
}

// lockGC keeps every "git gc" away, and says whether none is at work, by git's own protocol: of two that repack at once,
// each may remove a pack that has what the other relies on. As to git, one that began half a day ago is no more.
func (r *Repo) lockGC(now time.Time) (done func(), alone bool) {
	pid := filepath.Join(r.gitDir, "gc.pid")
	lock, err := os.OpenFile(pid+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, false
	}
	host, err := os.Hostname()
	if err == nil {
		_, err = fmt.Fprintf(lock, "%d %s", os.Getpid(), host)
	}
	err = errors.Join(err, lock.Close())
	if begun, unread := os.Lstat(pid); err == nil && !errors.Is(unread, fs.ErrNotExist) && (unread != nil || now.Sub(begun.ModTime()) < 12*time.Hour) {
		err = fs.ErrExist
	}
	if err == nil {
		err = os.Rename(pid+".lock", pid)
	}
	if err != nil {
		_ = os.Remove(pid + ".lock")
		return nil, false
	}
	return func() { _ = os.Remove(pid) }, true
}
