package workspace

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const canSyncDisk = true

// disks are the file systems that a Write touches, usually one. Each is held
// open from before the first change to it: syncfs reports what failed to be
// written since then, also what the system tried by itself.
type disks struct {
	mu   sync.Mutex
	held map[uint64]*os.File
}

// hold notes the file system that a directory is on.
func (d *disks) hold(dir *os.Root) error {
	info, err := dir.Stat(".")
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.ErrUnsupported
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held[uint64(st.Dev)] != nil {
		return nil
	}
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	if d.held == nil {
		d.held = map[uint64]*os.File{}
	}
	d.held[uint64(st.Dev)] = f
	return nil
}

// sync writes out what the system's memory holds of them.
func (d *disks) sync() error {
	var errs []error
	for _, f := range d.held {
		errs = append(errs, os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd()))))
	}
	return errors.Join(errs...)
}

func (d *disks) release() {
	for _, f := range d.held {
		_ = f.Close()
	}
}
