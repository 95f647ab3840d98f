package look

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline/atomicfile"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report"
)

// markerFile says that a directory is written by site.
const (
	markerFile = ".countersign-site"
	marker     = "countersign site wrote this directory. It removes pages from here that the ledger has no more.\n"
)

// ours are the directories that site writes in, and removes from.
var ours = []string{"tx", "patch", "commit", "pull", "person", "path", "month", "state", "search", "verify", "decide"}

func cores() int { return runtime.GOMAXPROCS(0) }

// A dir is the directory of a site. Nothing outside it is written, wherever links in it lead.
// Several goroutines may use it.
type dir struct {
	*os.Root
	name string

	mu      sync.Mutex
	written map[string]bool
}

// openDir opens a directory, or makes it. One that has files and was not written by site is refused.
func openDir(at, name string) (*dir, error) {
	if err := os.MkdirAll(at, 0o777); err != nil {
		return nil, failed(name, err)
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return nil, failed(name, err)
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	switch isMarker := func(e fs.DirEntry) bool { return e.Name() == markerFile }; {
	case err != nil:
		err = failed(name, err)
	case len(entries) > 0 && !slices.ContainsFunc(entries, isMarker):
		err = &console.UsageError{Message: name + " has files that no site of ours put there", Hint: "name a directory that is empty or not there yet"}
	default:
		return &dir{Root: root, name: name, written: map[string]bool{}}, nil
	}
	return nil, errors.Join(err, root.Close())
}

// failed is the error of a file that cannot be read or written.
func failed(name string, err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		err = p.Err
	case errors.As(err, &l): // from the name of a file in the making
		err = fmt.Errorf("%s: %w", report.Clean(l.New), l.Err)
	}
	return &console.ExitError{Code: console.ExitIO, Err: fmt.Errorf("%s: %w", name, err)}
}

// write puts a page in place whole, or not at all.
func (d *dir) write(address string, data []byte) error {
	return d.stream(address, d.whole(data))
}

// whole writes all of it at once.
func (d *dir) whole(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		if err != nil {
			err = failed(d.name, err)
		}
		return err
	}
}

// stream is write for a page that is written little by little.
func (d *dir) stream(address string, write func(io.Writer) error) error {
	if err := d.MkdirAll(path.Dir(address), 0o777); err != nil {
		return failed(d.name+": "+path.Dir(address)+"/", err)
	}
	if err := d.place(address, write); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.written[address] = true
	return nil
}

// place writes a file under another name first. Another run that writes to the same directory has other names: what it
// writes does not get into this one's pages.
func (d *dir) place(name string, write func(io.Writer) error) error {
	temporary := markerFile + ".new-" + rand.Text()
	f, err := d.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return failed(d.name, err)
	}
	var link *os.LinkError
	if err = atomicfile.Place(d.Root, f, temporary, name, func(f *os.File) error { return write(f) }); errors.As(err, &link) {
		err = failed(d.name, err)
	}
	return err
}

// remove removes a file that may not be there.
func (d *dir) remove(address string) error {
	if err := d.Remove(address); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed(d.name, err)
	}
	if dir := path.Dir(address); dir != "." {
		_ = d.Remove(dir) // unless there is something else
	}
	return nil
}

// removeOthers removes the pages of before that were not written now, and what a run that was
// stopped left behind. What site does not write stays.
func (d *dir) removeOthers() (removed int, err error) {
	files := d.FS()
	left, _ := fs.Glob(files, markerFile+".new-*") // its only error is of the pattern
	for _, name := range left {
		if err := d.remove(name); err != nil {
			return 0, err
		}
	}
	for _, top := range ours {
		err = errors.Join(err, fs.WalkDir(files, top, func(name string, e fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case e.IsDir() || d.written[name] || !isPage(name):
				return nil
			}
			removed++
			return d.remove(name)
		}))
	}
	if err != nil {
		err = failed(d.name, err)
	}
	return removed, err
}

// isPage reports whether a file has a name that site gives.
func isPage(name string) bool {
	base := path.Base(name)
	id, isHTML := strings.CutSuffix(name, ".html")
	id, inTx := strings.CutPrefix(id, "tx/")
	return base == "index.html" || isHTML && inTx && ledger.CheckID(id) == nil || strings.HasPrefix(name, "search/") && strings.HasSuffix(base, ".js") || name == bundleAddress
}
