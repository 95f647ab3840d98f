package packfile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// TestT80ReadOnly: a removable directory that may only be read is read, with or
// without the lock of who made it.
func TestT80ReadOnly(t *testing.T) {
	for name, locked := range map[string]bool{"no lock": false, "another user's lock": true} {
		t.Run(name, func(t *testing.T) {
			defer syscall.Umask(syscall.Umask(0o022)) // another user reads what is made
			top := t.TempDir()
			cache := filepath.Join(top, "cache")
			writer, err := OpenRemovable(cache)
			if err != nil {
				t.Fatal(err)
			}
			book := newBook(t)
			book.commit()
			tip := book.batch.IDs()[0]
			book.flush(writer)
			if err := writer.Close(); err != nil {
				t.Fatal(err)
			}
			lock := filepath.Join(cache, lockName)
			if locked {
				err = os.Chmod(lock, 0o444)
			} else {
				err = os.Remove(lock)
			}
			// t.TempDir is in a directory of the user's own.
			if err := errors.Join(err, os.Chmod(filepath.Dir(top), 0o755), os.Chmod(cache, 0o555)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(cache, 0o755) })
			var s *Store
			done := make(chan error)
			go func() {
				runtime.LockOSThread() // until the thread ends with this function: it is nobody's
				if _, _, errno := syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0); errno != 0 {
					done <- errno
					return
				}
				var err error
				if s, err = OpenRemovable(cache); err == nil {
					_, err = s.Read(tip)
				}
				done <- err
			}()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if held := s.dirs[0].lock != nil; held != locked {
				t.Errorf("locked: %v", held)
			}
			if locked {
				_ = Remove(cache) // who may not write cannot even lock it
				if _, err := s.Read(tip); err != nil {
					t.Error(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
