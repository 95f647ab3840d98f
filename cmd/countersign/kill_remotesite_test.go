package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A killSite is a copy of a remote and of a clone of it, at a place of its own.
type killSite struct {
	playground        // the clone that is used now
	remote     string // the remote's directory
	url        string
	clones     []string
}

// copied is the clone and the remote as they were before, at another place.
func (k *remoteKilled) copied() *killSite {
	k.t.Helper()
	k.n++
	name := fmt.Sprintf("copy%d", k.n)
	s := &killSite{k.playground, filepath.Join(k.server.Root, name+".git"), k.server.URL(name + ".git"), nil}
	check(k.t, os.CopyFS(s.remote, os.DirFS(filepath.Join(k.server.Root, "before.git"))))
	s.repo = filepath.Join(k.dir, name)
	check(k.t, os.CopyFS(s.repo, os.DirFS(k.repo)))
	config := filepath.Join(s.repo, ".git/config")
	raw, err := os.ReadFile(config)
	check(k.t, err)
	check(k.t, os.WriteFile(config, []byte(strings.ReplaceAll(string(raw), "/before.git", "/"+name+".git")), 0o644))
	s.clones = []string{s.repo}
	if k.n%2 == 0 { // a clone that has the ledger itself
		s.run(0, "sync")
	}
	return s
}

func (s *killSite) remove() {
	for _, dir := range append(s.clones, s.remote) {
		check(s.t, os.RemoveAll(dir))
	}
}

// anotherClone goes on in a fresh clone, of somebody else.
func (s *killSite) anotherClone() {
	s.t.Helper()
	s.repo = fmt.Sprintf("%s-%d", s.clones[0], len(s.clones))
	s.clones = append(s.clones, s.repo)
	check(s.t, os.Mkdir(s.repo, 0o777))
	s.git("clone", "-q", "--template=", s.url, ".")
	s.git("config", "user.name", "Grace")
	s.git("config", "user.email", "grace@localhost")
}

// begun is a command that was started; what it says on stderr is kept.
func (s *killSite) begun(args ...string) process {
	s.t.Helper()
	p := process{s.command(args...), make(chan error, 1)}
	p.Stderr = &bytes.Buffer{}
	check(s.t, p.Start())
	go func() { p.end <- p.Wait() }()
	return p
}

// atRemote is the remote's repository, for the real git.
func (s *killSite) atRemote() playground {
	remote := s.playground
	remote.repo = s.remote
	return remote
}

// remoteTip reads where the remote's ledger is, without a process.
func (s *killSite) remoteTip() string {
	raw, _ := os.ReadFile(filepath.Join(s.remote, "refs/agent/ledger"))
	return string(raw)
}

// moves is how often the remote's ledger has moved.
func (s *killSite) moves() int {
	if s.remoteTip() == "" {
		return 0
	}
	return strings.Count(s.atRemote().git("rev-list", "refs/agent/ledger"), "\n")
}

// lastStage is the last commit of the remote's ledger, as its trailers tell.
func (s *killSite) lastStage() string {
	if s.remoteTip() == "" {
		return "before the review"
	}
	return "after " + strings.TrimSpace(s.atRemote().git("log", "-1", "refs/agent/ledger",
		"--format=%(trailers:key=Countersign-Stage,valueonly,separator=) %(trailers:key=Countersign-Outcome,valueonly,separator=)"))
}

// changed tells whether the change was begun to be made in this clone.
func (s *killSite) changed() bool {
	raw, _ := os.ReadFile(filepath.Join(s.repo, "changed.txt"))
	return string(raw) == "new\n" || len(s.branches()) > 0
}

// branches are the commits of the branches that applies made in a clone.
func (s *killSite) branches() (commits []string) {
	found, _ := filepath.Glob(filepath.Join(s.repo, ".git/refs/heads/countersign/*"))
	for _, file := range found {
		raw, err := os.ReadFile(file)
		if err == nil && !strings.HasSuffix(file, ".lock") {
			commits = append(commits, strings.TrimSpace(string(raw)))
		}
	}
	return commits
}

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
