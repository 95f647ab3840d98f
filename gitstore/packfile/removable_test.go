package packfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// TestT80Remove: a removable directory stays while a Store reads or writes it, in
// this process or another, and goes when the last is closed or forgotten.
func TestT80Remove(t *testing.T) {
	if dir := os.Getenv("COUNTERSIGN_TEST_HOLD"); dir != "" { // the other process
		s, err := OpenRemovable(dir)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("held")
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
		runtime.KeepAlive(s)
		return
	}
	r := newRepo(t)
	cache := filepath.Join(t.TempDir(), "cache")
	reader, err := Open(r.objects(), cache)
	if err != nil {
		t.Fatal(err)
	}
	writer, err := OpenRemovable(cache)
	if err != nil {
		t.Fatal(err)
	}
	stays := func(why string, want bool) {
		t.Helper()
		if err := Remove(cache); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(cache); (err == nil) != want {
			t.Fatalf("%s: %v", why, err)
		}
	}
	book := newBook(t)
	book.commit()
	tip := book.batch.IDs()[0]
	stays("its writer is open", true)
	name, err := writer.WritePack(book.batch)
	if err != nil {
		t.Fatal(err)
	}
	writer.Release(name)
	if _, err := reader.Read(tip); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	stays("its reader is open", true)
	if _, err := reader.Read(tip); err != nil {
		t.Fatal(err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	stays("all are closed", false)
	if _, err := reader.Read(tip); err == nil {
		t.Error("an object was read that is gone")
	}

	cmd := exec.Command(os.Args[0], "-test.run=^TestT80Remove$")
	cmd.Env = append(os.Environ(), "COUNTERSIGN_TEST_HOLD="+cache)
	_, err = cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	for said := bufio.NewReader(out); ; {
		line, err := said.ReadString('\n')
		if err != nil {
			t.Fatalf("the other process: %v %s", err, line)
		}
		if line == "held\n" {
			break
		}
	}
	stays("another process has it", true)
	_, _ = cmd.Process.Kill(), cmd.Wait()
	stays("that process is gone", false)

	if _, err := OpenRemovable(cache); err != nil {
		t.Fatal(err)
	}
	for _, err := os.Stat(cache); err == nil; _, err = os.Stat(cache) {
		runtime.GC() // closes the file of a Store that nobody has
		if err := Remove(cache); err != nil {
			t.Fatal(err)
		}
	}
}

// TestT80RemoveBesideOpen: whoever opens a removable directory while others remove
// it has one that is there.
func TestT80RemoveBesideOpen(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	done := make(chan error)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
				if err := Remove(cache); err != nil && !os.IsNotExist(err) {
					done <- err
					return
				}
			}
		}
	}()
	for range 200 {
		s, err := OpenRemovable(cache)
		if err != nil {
			t.Fatal(err)
		}
		book := newBook(t)
		book.commit()
		tip := book.batch.IDs()[0]
		name, err := s.WritePack(book.batch)
		if err != nil {
			t.Fatal(err)
		}
		s.Release(name)
		if _, err := s.Read(tip); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
