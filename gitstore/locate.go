package gitstore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/gitstore/wire"
	gitconfig "github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// A place is where a repository is: its working tree ("" for a bare one), that
// working tree's own Git directory, and the one that all working trees share.
type place struct{ worktree, own, common string }

// locate finds the repository that dir is in, or a bare one that dir is
// (gitrepository-layout(5)).
func locate(dir string) (place, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return place{}, fmt.Errorf("opening the repository: %w", err)
	}
	if isGitDir(dir) {
		return place{"", dir, dir}, nil
	}
	for {
		dot := filepath.Join(dir, ".git")
		info, err := os.Stat(dot)
		switch {
		case err == nil && info.IsDir():
			return place{dir, dot, dot}, nil
		case err == nil:
			return linked(dir, dot)
		case !errors.Is(err, fs.ErrNotExist):
			return place{}, fmt.Errorf("opening the repository: %w", err)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return place{}, ErrNotRepository
		}
		dir = up
	}
}

// linked follows a .git file ("gitdir: PATH") and, from a linked working tree,
// its commondir.
func linked(dir, dot string) (place, error) {
	own, err := readPath(dot, "gitdir: ", dir)
	if err != nil {
		return place{}, err
	}
	common, err := readPath(filepath.Join(own, "commondir"), "", own)
	if errors.Is(err, fs.ErrNotExist) {
		common, err = own, nil
	}
	return place{dir, own, common}, err
}

// readPath reads a file that holds one path, relative to base.
func readPath(file, prefix, base string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("opening the repository: %w", err)
	}
	path, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), prefix)
	if !ok || path == "" {
		return "", fmt.Errorf("opening the repository: %s is malformed", file)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return filepath.Clean(path), nil
}

// isGitDir reports whether a directory is itself what .git is elsewhere, by what
// git looks for.
func isGitDir(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// supported are the extensions (gitrepository-layout, repository-version) that
// change nothing for us: a config.worktree is read, an object that a partial
// clone did not fetch is an error and never an absent file.
var supported = []string{"worktreeconfig", "partialclone", "preciousobjects", "noop", "noop-v1", "relativeworktrees"}

// checkFormat says plainly which kind of repository cannot be read.
func checkFormat(raw *config.Config) error {
	if v := raw.Section("core").Option("repositoryformatversion"); v != "" && v != "0" && v != "1" {
		return &UnsupportedError{fmt.Errorf("core.repositoryFormatVersion is %q", v)}
	}
	for _, o := range raw.Section("extensions").Options {
		key, value := strings.ToLower(o.Key), strings.ToLower(o.Value)
		switch {
		case slices.Contains(supported, key), key == "objectformat" && value == "sha1", key == "refstorage" && value == "files":
		case key == "objectformat":
			return &UnsupportedError{&wire.HashError{Format: value}}
		case key == "refstorage":
			return &UnsupportedError{fmt.Errorf("its refs are stored as %s (extensions.refStorage)", value)}
		default:
			return &UnsupportedError{fmt.Errorf("extensions.%s is set", o.Key)}
		}
	}
	return nil
}

func readConfig(file string) (*config.Config, error) {
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the Git configuration: %w", err)
	}
	raw := config.New()
	if err := config.NewDecoder(bytes.NewReader(data)).Decode(raw); err != nil {
		return nil, fmt.Errorf("reading the Git configuration: %s: %w", file, err)
	}
	return raw, nil
}

// storage is go-git's storage with a configuration that go-git can read: it
// refuses values, and extensions, that mean nothing to us.
type storage struct {
	*filesystem.Storage
	raw *config.Config
}

// Config returns the [core] section alone.
func (s storage) Config() (*gitconfig.Config, error) {
	only := config.New()
	only.Sections = append(only.Sections, s.raw.Section("core"))
	var text bytes.Buffer
	if err := config.NewEncoder(&text).Encode(only); err != nil {
		return nil, err
	}
	cfg := gitconfig.NewConfig()
	return cfg, cfg.Unmarshal(text.Bytes())
}
