package git_test

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// A stored repository has commits, trees, blobs and a tag, as git keeps them.
type stored struct {
	t   *testing.T
	dir string
}

func newStored(t *testing.T) stored {
	t.Helper()
	s := stored{t, t.TempDir()}
	s.git("", "init", "--quiet")
	s.git("", "config", "gc.auto", "0")
	var stream strings.Builder
	text := strings.Repeat("a line\n", 3000)
	for n := range 40 {
		text = fmt.Sprintf("%d\n", n) + text
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter A <a@example.org> %d +0000\ndata 5\nmore\n\n", 1767571200+n)
		fmt.Fprintf(&stream, "M 100644 inline dir/file\ndata %d\n%s\nM 100644 inline empty\ndata 0\n\n", len(text), text)
	}
	s.git(stream.String(), "fast-import", "--quiet")
	s.git("", "tag", "-a", "-m", "a tag", "v1", "main")
	return s
}

func (s stored) git(stdin string, args ...string) string {
	s.t.Helper()
	return strings.TrimSuffix(teststand.Git(s.t, s.dir, stdin, args...), "\n")
}

func (s stored) objects() string { return filepath.Join(s.dir, ".git", "objects") }

func (s stored) open() *git.Objects {
	o := &git.Objects{Dir: s.objects()}
	s.t.Cleanup(func() { _ = o.Close() })
	return o
}

func (s stored) ids() (ids []packfile.ID) {
	for line := range strings.Lines(s.git("", "cat-file", "--batch-check", "--batch-all-objects") + "\n") {
		ids = append(ids, packfile.ParseID(line[:40]))
	}
	return ids
}

func (s stored) write(text string) packfile.ID {
	return packfile.ParseID(s.git(text, "hash-object", "-w", "--stdin"))
}

func (s stored) loose(id packfile.ID) string {
	return filepath.Join(s.objects(), id.String()[:2], id.String()[2:])
}

// pack packs everything and returns the path of the pack without its extension.
func (s stored) pack(args ...string) string {
	s.git("", append(args, "repack", "-adfq")...)
	packs, err := filepath.Glob(filepath.Join(s.objects(), "pack", "*.pack"))
	if err != nil || len(packs) != 1 {
		s.t.Fatal(packs, err)
	}
	return strings.TrimSuffix(packs[0], ".pack")
}

// overwrite replaces a file that git made read-only.
func overwrite(t *testing.T, file string, data []byte) {
	t.Helper()
	fatal(t, errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, data, 0o600)))
}

// reads fails the test unless every object is read, by several goroutines.
func (s stored) reads(o *git.Objects, ids []packfile.ID) {
	s.t.Helper()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for _, id := range ids {
				object, err := o.View(id)
				kind, size, sizeErr := o.Size(id)
				if err != nil || sizeErr != nil || kind != object.Type || size != int64(len(object.Data)) {
					s.t.Errorf("%s is a %s of %d bytes, read %d: %v %v", id, kind, size, len(object.Data), err, sizeErr)
				}
			}
		})
	}
	all.Wait()
}

var nowhere = packfile.ParseID("0123456789012345678901234567890123456789")

// absent fails the test unless an object is missing.
func absent(t *testing.T, o *git.Objects, id packfile.ID) {
	t.Helper()
	if _, err := o.View(id); !errors.Is(err, packfile.ErrMissing) {
		t.Errorf("View: %v", err)
	}
	if _, _, err := o.Size(id); !errors.Is(err, packfile.ErrMissing) {
		t.Errorf("Size: %v", err)
	}
}

// refused fails the test unless reading an object is an error, and not that it is missing.
func refused(t *testing.T, o *git.Objects, id packfile.ID) {
	t.Helper()
	if object, err := o.View(id); err == nil || errors.Is(err, packfile.ErrMissing) {
		t.Errorf("%.100q, %v", object.Data, err)
	}
}

// TestObjects: every object, however git keeps it, also while it keeps them otherwise.
func TestObjects(t *testing.T) {
	s := newStored(t)
	ids, stays := s.ids(), s.open()
	check := func(t *testing.T) {
		s.reads(stays, ids)
		fresh := s.open()
		s.reads(fresh, ids)
		absent(t, stays, nowhere)
		absent(t, fresh, nowhere)
	}
	t.Run("as imported", check)
	for name, args := range map[string][]string{
		"one pack": nil, "deep chains": {"-c", "pack.depth=4000"}, "deltas by hash": {"-c", "repack.useDeltaBaseOffset=false"}, "not compressed": {"-c", "pack.compression=0"},
	} {
		t.Run(name, func(t *testing.T) {
			s.pack(args...)
			check(t)
		})
	}
	s.git("", "multi-pack-index", "write")
	t.Run("a multi-pack index", check)
	t.Run("index of version 1", func(t *testing.T) {
		pack := s.pack()
		fatal(t, os.Remove(pack+".idx"))
		s.git("", "index-pack", "--index-version=1", "-o", pack+".idx", pack+".pack")
		check(t)
	})
	t.Run("loose", func(t *testing.T) {
		pack := s.pack()
		data, err := os.ReadFile(pack + ".pack")
		fatal(t, err)
		fatal(t, errors.Join(os.Remove(pack+".idx"), os.Remove(pack+".pack")))
		s.git(string(data), "unpack-objects", "-q")
		check(t)
	})
	t.Run("borrowed", func(t *testing.T) {
		own, more := t.TempDir(), filepath.Join(t.TempDir(), `a "quoted": directory`)
		o := &git.Objects{Dir: own, More: more}
		absent(t, o, ids[0])
		if err := os.Symlink(s.objects(), more); err != nil {
			t.Skip(err)
		}
		o.Restart()
		s.reads(o, ids)
		fatal(t, o.Close())
	})
}

// T95 What stands at an object's place and is something else is an error, never content and
// never absence.
func TestT95LyingObjects(t *testing.T) {
	t.Run("a loose object of another name", func(t *testing.T) {
		s := newStored(t)
		right, wrong := s.write("approved"), s.write("forged")
		data, err := os.ReadFile(s.loose(wrong))
		fatal(t, err)
		overwrite(t, s.loose(right), data)
		refused(t, s.open(), right)
	})
	for name, data := range map[string]string{"junk": "junk", "empty": ""} {
		t.Run("a loose object that is "+name, func(t *testing.T) {
			s := newStored(t)
			id, other := s.write("approved"), s.write("another")
			overwrite(t, s.loose(id), []byte(data))
			o := s.open()
			refused(t, o, id)
			s.reads(o, []packfile.ID{other})
			absent(t, o, nowhere)
		})
	}
	t.Run("an index that swaps objects", func(t *testing.T) {
		s := newStored(t)
		right, wrong := s.write("approved"), s.write("forged!!")
		s.git("", "update-ref", "refs/tags/a", right.String())
		s.git("", "update-ref", "refs/tags/b", wrong.String())
		file := s.pack() + ".idx"
		idx, err := os.ReadFile(file)
		fatal(t, err)
		count := int(binary.BigEndian.Uint32(idx[8+255*4:]))
		place := func(id packfile.ID) []byte {
			names := idx[8+256*4:]
			for i := range count {
				if bytes.Equal(names[i*20:i*20+20], id.Append(nil)) {
					return idx[8+256*4+count*24+i*4:][:4]
				}
			}
			t.Fatal("it is not in the index")
			return nil
		}
		a, b := place(right), place(wrong)
		var was [4]byte
		copy(was[:], a)
		copy(a, b)
		copy(b, was[:])
		sum := sha1.Sum(idx[:len(idx)-20])
		overwrite(t, file, append(idx[:len(idx)-20], sum[:]...))
		o := s.open()
		refused(t, o, right)
		refused(t, o, wrong)
	})
	t.Run("a pack that was damaged", func(t *testing.T) {
		s := newStored(t)
		ids := s.ids()
		file := s.pack() + ".pack"
		data, err := os.ReadFile(file)
		fatal(t, err)
		for i := 12; i < len(data)-20; i++ {
			data[i] ^= 0x55
		}
		overwrite(t, file, data)
		o := s.open()
		for _, id := range ids { // git calls some of them missing
			if object, err := o.View(id); err == nil {
				t.Errorf("%.100q", object.Data)
			}
		}
		if err := o.Verify(t.Context(), nil); !errors.Is(err, packfile.ErrDamaged) {
			t.Error(err)
		}
	})
	t.Run("a pack whose index was damaged", func(t *testing.T) {
		s := newStored(t)
		ids := s.ids()
		overwrite(t, s.pack()+".idx", []byte("junk"))
		refused(t, s.open(), ids[0])
	})
	t.Run("alternates that lead nowhere", func(t *testing.T) {
		s := newStored(t)
		ids := s.ids()
		fatal(t, os.WriteFile(filepath.Join(s.objects(), "info", "alternates"), []byte("/nowhere\n"), 0o666))
		refused(t, s.open(), nowhere)
		s.reads(s.open(), ids)
	})
	t.Run("alternates that lead to a forgery", func(t *testing.T) {
		s, outside := newStored(t), newStored(t)
		wrong := outside.write("forged")
		data, err := os.ReadFile(outside.loose(wrong))
		fatal(t, err)
		file := outside.loose(nowhere)
		fatal(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, data, 0o444)))
		fatal(t, os.WriteFile(filepath.Join(s.objects(), "info", "alternates"), []byte(outside.objects()+"\n"), 0o666))
		o := s.open()
		refused(t, o, nowhere)
		s.reads(o, []packfile.ID{wrong}) // which has its own name
	})
}

// T95 What is there and cannot be read is an error, though git may call the object missing without a word.
func TestT95UnreadableObjects(t *testing.T) {
	for name, put := range map[string]func(file string) error{
		"a directory":      func(file string) error { return os.Mkdir(file, 0o777) },
		"a link to itself": func(file string) error { return os.Symlink(file, file) },
	} {
		unreadable := func(what string, prepare func(s stored) (file string, id packfile.ID)) {
			t.Run(what+" that is "+name, func(t *testing.T) {
				s := newStored(t)
				file, id := prepare(s)
				if err := errors.Join(os.RemoveAll(file), put(file)); err != nil {
					t.Skip(err)
				}
				o := s.open()
				refused(t, o, id)
				if _, _, err := o.Size(id); err == nil || errors.Is(err, packfile.ErrMissing) {
					t.Errorf("Size: %v", err)
				}
			})
		}
		unreadable("a loose object", func(s stored) (string, packfile.ID) {
			id := s.write("approved")
			return s.loose(id), id
		})
		unreadable("a pack", func(s stored) (string, packfile.ID) {
			id := s.ids()[0]
			return s.pack() + ".pack", id
		})
		unreadable("an index", func(s stored) (string, packfile.ID) {
			id := s.ids()[0]
			return s.pack() + ".idx", id
		})
		unreadable("the list of what is borrowed", func(s stored) (string, packfile.ID) {
			return filepath.Join(s.objects(), "info", "alternates"), nowhere
		})
		unreadable("what the borrowed directory has", func(s stored) (string, packfile.ID) {
			outside := newStored(t)
			id := outside.write("approved")
			fatal(t, os.WriteFile(filepath.Join(s.objects(), "info", "alternates"), []byte(outside.objects()+"\n"), 0o666))
			return outside.loose(id), id
		})
	}
}

// T95 What git waits for without an end is an error, and nobody is left waiting.
func TestT95PatientForAWhile(t *testing.T) {
	s := newStored(t)
	git.Impatient(t)
	bin := t.TempDir()
	fatal(t, os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\nexec sleep 600\n"), 0o777))
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	refused(t, s.open(), nowhere)
	if _, _, err := (git.Command{Dir: s.dir}).Soon(t.Context()); err == nil || !strings.Contains(err.Error(), "has not answered") {
		t.Error("Soon", err)
	}
}

// T95 What is asked while another closes is answered or is an error, and not that anything is missing; and no process
// is there afterwards.
func TestT95CloseBesideQuestions(t *testing.T) {
	s := newStored(t)
	ids := s.ids()
	for range 20 {
		o := s.open()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for _, id := range ids {
					object, err := o.View(id)
					if got, _ := object.ID(0); err == nil && got != id || errors.Is(err, packfile.ErrMissing) {
						t.Errorf("%s: %.100q %v", id, object.Data, err)
					}
				}
			})
		}
		s.reads(s.open(), ids[:1])
		fatal(t, o.Close())
		all.Wait()
		if o.Running() {
			t.Error("a process is running after Close")
		}
		refused(t, o, ids[0])
	}
}

// T95 Nothing of the repository's own configuration counts: a promised object is missing and
// nothing is run to fetch it, and a replacement is not followed.
func TestT95ObjectsWithoutConfiguration(t *testing.T) {
	s := newStored(t)
	ran := filepath.Join(t.TempDir(), "ran")
	for key, value := range map[string]string{
		"core.repositoryFormatVersion": "1", "extensions.partialClone": "x", "remote.x.promisor": "true",
		"remote.x.url": "ext::touch " + ran, "remote.x.vcs": "ext", "protocol.ext.allow": "always", "core.fsmonitor": "touch " + ran,
		"core.sshCommand": "touch " + ran, "core.alternateRefsCommand": "touch " + ran, "core.packedGitWindowSize": "1",
	} {
		s.git("", "config", key, value)
	}
	right, wrong := s.write("approved"), s.write("forged")
	s.git("", "update-ref", "refs/replace/"+right.String(), wrong.String())
	o := s.open()
	absent(t, o, nowhere)
	if object, err := o.View(right); err != nil || string(object.Data) != "approved" {
		t.Errorf("%q %v", object.Data, err)
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none")) // where no other repository can be made
	o = s.open()
	if object, err := o.View(right); err != nil || string(object.Data) != "approved" {
		t.Errorf("%q %v", object.Data, err)
	}
	absent(t, o, nowhere)
	if _, err := os.Stat(ran); err == nil {
		t.Error("the repository's own configuration was followed")
	}
}

// TestT95ObjectsOfAnotherGit: whatever answers, an object is what its name says, or an error.
func TestT95ObjectsOfAnotherGit(t *testing.T) {
	s := newStored(t)
	id := s.write("approved")
	path := os.Getenv("PATH")
	for name, answer := range map[string]string{
		"another content":   `echo "$id blob 6"; echo forged`,
		"another object":    `echo "` + nowhere.String() + ` blob 8"; echo approved`,
		"another type":      `echo "$id commit 8"; echo approved`,
		"no type":           `echo "$id thing 8"; echo approved`,
		"shorter":           `echo "$id blob 7"; echo approved`,
		"longer":            `echo "$id blob 9"; echo approved`,
		"less than nothing": `echo "$id blob -1"`,
		"too large":         `echo "$id blob 3000000000"; exec yes`,
		"without an end":    `exec yes`,
		"a long line":       `exec tr '\0' x </dev/zero`,
		"only complaints":   `echo "error: it is gone" >&2; echo "$id missing"`,
		"dead":              `exit 1`,
		"killed":            `kill -9 $$`,
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			script := "#!/bin/sh\nread -r command id\n" + answer + "\n"
			fatal(t, os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o777))
			t.Setenv("PATH", bin+string(filepath.ListSeparator)+path)
			refused(t, s.open(), id)
		})
	}
	// One that dies once is replaced.
	bin, real := t.TempDir(), filepath.Join(t.TempDir(), "once")
	program, err := exec.LookPath("git")
	fatal(t, err)
	script := fmt.Sprintf("#!/bin/sh\nmkdir %s 2>/dev/null && exit 1\nexec %s \"$@\"\n", real, program)
	fatal(t, os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o777))
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+path)
	s.reads(s.open(), []packfile.ID{id})
	t.Setenv("PATH", t.TempDir())
	if _, err := s.open().View(id); !errors.Is(err, git.ErrNotInstalled) {
		t.Error(err)
	}
}

// TestIndex: a pack that is read is added, held, and one that is no pack leaves nothing.
func TestIndex(t *testing.T) {
	s := newStored(t)
	data, err := os.ReadFile(s.pack() + ".pack")
	fatal(t, err)
	o := &git.Objects{Dir: t.TempDir()}
	absent(t, o, s.ids()[0])
	held, err := o.Index(t.Context(), bytes.NewReader(data))
	fatal(t, err)
	s.reads(o, s.ids())
	if _, err := os.Stat(string(held) + ".keep"); err != nil {
		t.Error(err)
	}
	held.Release()
	if err := errors.Join(o.Verify(t.Context(), nil), o.Close()); err != nil {
		t.Error(err)
	}
	for _, junk := range [][]byte{nil, []byte("junk"), data[:len(data)-1]} {
		into := &git.Objects{Dir: t.TempDir()}
		if _, err := into.Index(t.Context(), bytes.NewReader(junk)); err == nil {
			t.Error("no pack was taken for one")
		}
		if left, err := filepath.Glob(filepath.Join(into.Dir, "*")); err != nil || len(left) > 0 {
			t.Error(left, err)
		}
	}
}

// T80 That git finds no object says nothing while the packs change, however often it says so.
func TestT80MissedWhilePacksChange(t *testing.T) {
	for _, at := range []struct {
		missed int
		want   string
	}{{5, "there"}, {2000, ""}} {
		there := packfile.Object{Type: plumbing.BlobObject, Data: []byte("there")}
		id, err := there.ID(packfile.SHA1)
		o, bin := &git.Objects{Dir: t.TempDir()}, t.TempDir()
		pack := filepath.Join(o.Dir, "pack")
		script := fmt.Sprintf("#!/bin/sh\ncd %s\nn=0\n: > 0.idx\nwhile read word id; do mv $n.idx $((n+1)).idx; n=$((n+1)); if [ $n -lt %d ]; then echo \"$id missing\"; else printf '%%s blob 5\\nthere\\n' \"$id\"; fi; done\n", pack, at.missed)
		fatal(t, errors.Join(err, os.Mkdir(pack, 0o777), os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o777)))
		t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
		if found, err := o.View(id); string(found.Data) != at.want || (at.want == "") != (err != nil) || errors.Is(err, packfile.ErrMissing) {
			t.Errorf("%d: %q, %v", at.missed, found.Data, err)
		}
	}
}
