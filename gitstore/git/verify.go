package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/parallel"
)

// Verify holds every pack that is read, and its index, to the checksum that ends it: to the
// last bit they are what was written. After each piece, progress (which may be nil) is told
// how many bytes are done, of how many; on several goroutines.
func (o *Objects) Verify(ctx context.Context, progress func(done, total int64)) error {
	dirs, err := o.Dirs(ctx)
	if err != nil {
		return err
	}
	var files []string
	var total, read atomic.Int64
	for _, dir := range dirs {
		found, err := packfile.Files(filepath.Join(dir, "pack"), "", ".idx")
		if err != nil {
			return err
		}
		for _, idx := range found {
			files = append(files, strings.TrimSuffix(idx, ".idx")+".pack", idx)
		}
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil { // else verifyFile tells
			total.Add(info.Size())
		}
	}
	errs := make([]error, len(files))
	parallel.Do(len(files), func(i int) {
		errs[i] = verifyFile(files[i], o.Format, func(n int) {
			if now := read.Add(int64(n)); progress != nil {
				progress(now, total.Load())
			}
		})
	})
	return errors.Join(errs...)
}

// borrowed are the directories that "git count-objects -v" names.
func borrowed(said string) (dirs []string) {
	for line := range strings.Lines(said) {
		if dir, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "alternate: "); ok {
			if plain, err := strconv.Unquote(dir); err == nil { // git quotes as C does
				dir = plain
			}
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// verifyFile holds a file to the hash that ends it. One that is gone was packed anew meanwhile.
func verifyFile(name string, format packfile.Format, read func(int)) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	sum, end := format.New(), make([]byte, format.Size())
	counted := io.TeeReader(io.LimitReader(f, info.Size()-int64(format.Size())), counter(read))
	if _, err = io.CopyBuffer(sum, counted, make([]byte, 256<<10)); err == nil {
		_, err = io.ReadFull(f, end)
	}
	if err != nil || !bytes.Equal(sum.Sum(nil), end) {
		return fmt.Errorf("%s: %w: its content is not what its checksum says", filepath.Base(name), errors.Join(packfile.ErrDamaged, err))
	}
	read(format.Size())
	return nil
}

type counter func(int)

func (c counter) Write(p []byte) (int, error) {
	c(len(p))
	return len(p), nil
}
