package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
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

// changed reports whether the change was begun to be made in this clone.
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
