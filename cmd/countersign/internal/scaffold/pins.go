package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/report"
)

// A Pin is what workflows call the program by: the action's repository, as in
// "owner/countersign", and the commit, tag or branch of it.
type Pin struct{ Repository, Ref string }

func (p Pin) String() string { return p.Repository + "@" + p.Ref }

// pinned is a step that uses a repository called countersign, or a workflow of it.
var pinned = canon.Regexp(`(?m)^[ \t]*(?:- )?uses:[ \t]*["']?([A-Za-z0-9_.-]+/countersign)(?:/[A-Za-z0-9_./-]+)?@([A-Za-z0-9_./-]+)["']?[ \t]*(?:#.*)?\r?$`)

// Newest judges what every workflow in a working tree uses; tags asks a repository for its
// tags, tag → commit. There are no findings where the program is in no workflow.
func Newest(worktree string, tags func(repository string) (map[string]string, error)) ([]Finding, error) {
	pins, err := PinsIn(worktree)
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, pin := range pins {
		all, err := tags(pin.Repository)
		if err != nil {
			return nil, err
		}
		out = append(out, pin.Standing(all))
	}
	return out, nil
}

// PinsIn are those of every workflow in a working tree, each once.
func PinsIn(worktree string) ([]Pin, error) {
	const folder = ".github/workflows"
	root, err := os.OpenRoot(worktree) // no link leads out of it
	if err != nil {
		return nil, err
	}
	defer root.Close()
	tree := root.FS()
	entries, err := fs.ReadDir(tree, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var pins []Pin
	for _, e := range entries {
		if ext := path.Ext(e.Name()); !e.Type().IsRegular() || ext != ".yml" && ext != ".yaml" {
			continue
		}
		raw, err := fs.ReadFile(tree, folder+"/"+e.Name())
		if err != nil {
			return nil, err
		}
		for _, m := range pinned().FindAllSubmatch(raw, -1) {
			if p := (Pin{string(m[1]), string(m[2])}); !slices.Contains(pins, p) {
				pins = append(pins, p)
			}
		}
	}
	return pins, nil
}

// RepositoryForm is a repository of the program.
var RepositoryForm = canon.Regexp(`^[A-Za-z0-9][A-Za-z0-9-]*/countersign$`)

// Released is a release of a repository, by its tags, tag → commit: the newest where no
// tag is given.
func Released(repository, tag string, tags map[string]string) (Pin, error) {
	if tag = cmp.Or(tag, newestRelease(tags)); tags[tag] == "" {
		return Pin{}, fmt.Errorf("%s has no release %s", repository, tag)
	}
	return Pin{repository, tags[tag]}, nil
}

// Published is the release that this program is of, as OWNER/countersign@TAG, which .ci/release
// has the linker fill in; "" where it was built otherwise.
var Published string

// ReleaseOf is where this program is from, and the tag of its release, where whoever published
// it has said so, or "go install" got it from GitHub; "" where it was built otherwise: the program
// knows nothing of who published it then, and makes up no address.
func ReleaseOf(published string, info *debug.BuildInfo) (repository, tag string) {
	path, tag, _ := strings.Cut(published, "@")
	if published == "" && info != nil && info.Main.Sum != "" { // not built in a clone
		if on, onGitHub := strings.CutPrefix(info.Main.Path, "github.com/"); onGitHub {
			path, tag = on, info.Main.Version
		}
	}
	if _, is := parseRelease(tag); !is || !RepositoryForm().MatchString(path) {
		return "", ""
	}
	return path, tag
}

// Own is the repository of the release that this program is of, "" for none that it knows.
func Own() string {
	info, _ := debug.ReadBuildInfo()
	repository, _ := ReleaseOf(Published, info)
	return repository
}

// Standing judges a pin by the tags of its repository, tag → commit: it is the
// newest release, or a finding that fails says what is.
func (p Pin) Standing(tags map[string]string) Finding {
	newest := newestRelease(tags)
	if newest == "" {
		return note("", "%s has no release", report.Clean(p.Repository))
	}
	latest := Pin{p.Repository, tags[newest]}
	if p == latest {
		return ok("the workflows use %s %s, the newest release", report.Clean(p.Repository), report.Clean(newest))
	}
	now := report.Clean(p.String())
	for tag, commit := range tags {
		if _, is := parseRelease(tag); is && commit == p.Ref {
			now = report.Clean(p.Repository) + " " + tag
		}
	}
	return fails("countersign init --uses "+latest.String(), "the workflows use %s; the newest release is %s", now, newest)
}

// newestRelease is the tag of the newest release that is not one to try out, ""
// for none.
func newestRelease(tags map[string]string) (newest string) {
	var most [3]uint64
	for tag := range tags {
		v, is := parseRelease(tag)
		if is && (newest == "" || slices.Compare(v[:], most[:]) > 0) {
			newest, most = tag, v
		}
	}
	return newest
}

// parseRelease reads a tag such as v1.2.3; one with more behind it is no release.
func parseRelease(tag string) (v [3]uint64, is bool) {
	rest, is := strings.CutPrefix(tag, "v")
	parts := strings.Split(rest, ".")
	if !is || len(parts) != len(v) {
		return v, false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil || strconv.FormatUint(n, 10) != part {
			return v, false
		}
		v[i] = n
	}
	return v, true
}
