package packfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

func readLoose(path string) (Object, error) {
	var o Object
	err := withLoose(path, func(r *reader, h header) (err error) {
		o.Type = h.kind
		o.Data, err = r.rest(h.size)
		return err
	})
	return o, err
}

func sizeLoose(path string) (header, error) {
	var out header
	err := withLoose(path, func(_ *reader, h header) error {
		out = h
		return nil
	})
	return out, err
}

// withLoose reads the header of a loose object and lets use read on.
func withLoose(path string, use func(*reader, header) error) (err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrMissing
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := getReader()
	defer r.put()
	if err := r.at(f, 0, 1<<62).stream(); err != nil {
		return err
	}
	h, err := looseHeader(r.zlib)
	if err == nil {
		err = use(r, h)
	}
	return err
}

// looseHeader reads "<type> <size>\0".
func looseHeader(z io.Reader) (header, error) {
	const longest = len("commit 18446744073709551615\x00")
	var text []byte
	for one := make([]byte, 1); ; text = append(text, one[0]) {
		if _, err := io.ReadFull(z, one); err != nil {
			return header{}, readError(err)
		}
		if one[0] == 0 {
			break
		}
		if len(text) == longest {
			return header{}, damaged("a loose object without a header")
		}
	}
	name, digits, _ := strings.Cut(string(text), " ")
	kind, err1 := plumbing.ParseObjectType(name)
	size, err2 := strconv.ParseUint(digits, 10, 62)
	if err1 != nil || err2 != nil || kind > plumbing.TagObject || strconv.FormatUint(size, 10) != digits {
		return header{}, damaged("a loose object with the header %+q", text)
	}
	return header{kind: kind, size: int64(size)}, nil
}
