package main

import (
	"encoding/json"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// A remoteEnd is what a run leaves.
type remoteEnd struct {
	types  []string          // of the events of the only transaction
	files  map[string]string // in the clone where it ended
	commit string            // of the apply, "" for a working tree
	locks  []string          // files that are there to hold something
}

// end reads what is there, from the remote with plain git and from the disk.
func (s *killSite) end() remoteEnd {
	s.t.Helper()
	end := remoteEnd{files: s.files(), locks: s.locks()}
	for i, line := range s.events() {
		var event struct {
			Type    string
			Seq     int
			Payload struct {
				Success *bool
				After   string `json:"commit_after"`
			}
		}
		check(s.t, json.Unmarshal([]byte(line), &event))
		if event.Seq != i+1 || event.Payload.Success != nil && !*event.Payload.Success {
			s.t.Errorf("event %d is %s", i+1, line)
		}
		end.types = append(end.types, event.Type)
		end.commit += event.Payload.After
	}
	return end
}

// events are those of the one transaction in the remote's ledger.
func (s *killSite) events() []string {
	s.t.Helper()
	remote, events := s.atRemote(), ""
	for name := range strings.FieldsSeq(remote.git("ls-tree", "-r", "--name-only", "refs/agent/ledger", "transactions")) {
		if !strings.HasSuffix(name, "/events.jsonl") {
			continue
		}
		if events != "" {
			s.t.Error("there are two transactions")
		}
		events = remote.git("show", "refs/agent/ledger:"+name)
	}
	return slices.Collect(strings.Lines(events))
}

// files is the working tree without .git.
func (s *killSite) files() map[string]string {
	s.t.Helper()
	files := map[string]string{}
	check(s.t, filepath.WalkDir(s.repo, func(p string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(s.repo, p)
		switch {
		case err != nil:
			return err
		case name == ".git":
			return fs.SkipDir
		case !d.IsDir():
			files[filepath.ToSlash(name)] = s.read(name)
		}
		return nil
	}))
	return files
}

// finished checks that everything is as steps which were left alone leave it.
func (s *killSite) finished(want remoteEnd, where string) {
	s.t.Helper()
	got := s.end()
	if !slices.Equal(got.types, want.types) {
		s.t.Errorf("%s: the events are %v, want %v", where, got.types, want.types)
	}
	if !maps.Equal(got.files, want.files) {
		s.t.Errorf("%s: the files are %q, want %q", where, got.files, want.files)
	}
	if got.commit != want.commit {
		s.t.Errorf("%s: the commit is %s, want %s", where, got.commit, want.commit)
	}
	if !slices.Equal(got.locks, want.locks) {
		s.t.Errorf("%s: of files that hold something there are %v, want %v", where, got.locks, want.locks)
	}
	s.applied(want.commit, where)
	s.audited(where)
}

// applied checks that the commit is what the branch is at, in at least one
// clone, and that no clone has another.
func (s *killSite) applied(commit, where string) {
	s.t.Helper()
	var found []string
	for _, s.repo = range s.clones {
		found = append(found, s.branches()...)
	}
	slices.Sort(found)
	if found = slices.Compact(found); strings.Join(found, " ") != commit {
		s.t.Errorf("%s: the branches are at %q, want %q", where, found, commit)
	}
}

// locks are the files, in the clone and at the remote, that hold something while
// a process runs.
func (s *killSite) locks() (names []string) {
	s.t.Helper()
	for _, dir := range []string{s.repo, s.remote} {
		check(s.t, filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
			name := filepath.Base(p)
			if strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "apply-") || strings.HasPrefix(name, "applying-") {
				names = append(names, name)
			}
			return err
		}))
	}
	return names
}

// audited checks the remote with the real git, and that a fresh clone, which
// gets the same ledger, finds it sound.
func (s *killSite) audited(where string) {
	s.t.Helper()
	if out := s.atRemote().git("fsck", "--strict", "--no-dangling"); out != "" {
		s.t.Errorf("%s: git fsck: %s", where, out)
	}
	s.anotherClone()
	s.git("fetch", "-q", "origin", "refs/agent/ledger:refs/agent/ledger")
	if tip := s.git("rev-parse", "refs/agent/ledger"); tip != s.remoteTip() {
		s.t.Errorf("%s: the remote's ledger is at %s, a clone got %s", where, s.remoteTip(), tip)
	}
	if code, out, errs := runCode(s.command("audit")); code != 0 {
		s.t.Errorf("%s: audit ends with %d\n%s%s", where, code, out, errs)
	}
}
