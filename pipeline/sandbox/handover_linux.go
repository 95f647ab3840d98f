package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// handOver gives the directory and the scratch to the command's user. A file with
// a hard link outside is refused: writing to it would write there.
func (j *job) handOver(p plan) error {
	if j.sandbox.Mode == DangerFullAccess {
		return nil
	}
	if err := j.reachable(p); err != nil {
		return err
	}
	for _, dir := range []string{j.scratch, j.dir} {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		err = claim(root, p.user)
		_ = root.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// reachable checks that without namespaces the command's user can come to the
// directories at all: those above must let everybody pass.
func (j *job) reachable(p plan) error {
	if p.namespaces || p.user < 0 {
		return nil
	}
	for _, dir := range []string{j.scratch, j.dir} {
		for above := filepath.Dir(dir); ; above = filepath.Dir(above) {
			info, err := os.Stat(above)
			if err != nil {
				return err
			}
			if info.Mode()&0o001 == 0 {
				return fmt.Errorf("user %d cannot come to %s: %s does not let other users pass", p.user, dir, above)
			}
			if above == filepath.Dir(above) {
				break
			}
		}
	}
	return nil
}

// claim checks every file below root, then gives it to user unless that is -1.
func claim(root *os.Root, user int) error {
	links := map[inode]*linked{}
	var foreign []string
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		if !d.IsDir() && st.Nlink > 1 {
			meet(links, name, st)
		}
		if user >= 0 && int(st.Uid) != user {
			foreign = append(foreign, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, l := range links {
		if l.missing > 0 {
			return fmt.Errorf("%s has a hard link outside", l.name)
		}
	}
	for _, name := range foreign {
		if err := root.Lchown(name, user, user); err != nil {
			return err
		}
	}
	return nil
}

// An inode is a file whatever its names are.
type inode struct{ device, number uint64 }

// linked is a file with several names: one of those met, and how many were not.
type linked struct {
	name    string
	missing uint64
}

func meet(links map[inode]*linked, name string, st *syscall.Stat_t) {
	id := inode{uint64(st.Dev), st.Ino}
	if links[id] == nil {
		links[id] = &linked{name: name, missing: uint64(st.Nlink)}
	}
	links[id].missing--
}
