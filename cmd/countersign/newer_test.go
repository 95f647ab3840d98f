package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// TestNewerProgram plays a made-up 1.1, which is this program linked with another version, against 1.0. What 1.0 began, 1.1
// goes on with, and 1.0 after it. Of what 1.1 began, 1.0 says that it is newer: with an exit code of its own, and it
// writes nothing.
func TestNewerProgram(t *testing.T) {
	t.Parallel()
	long(t) // it builds the program once more; gitstore's TestNewer holds what it does about the records
	bin := filepath.Join(t.TempDir(), "countersign")
	out, err := exec.Command("go", "build", "-ldflags", "-X github.com/countersign-dev/countersign/pipeline/record/canon.version=1.1", "-o", bin, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	start := func(t *testing.T) (old, young playground, tip func() string) {
		old = newSandbox(t, map[string]string{"a.txt": "a\n"})
		old.git("init", "-q", "-b", "main")
		old.commit()
		check(t, os.WriteFile(filepath.Join(old.dir, "new.patch"), []byte(addition("new.txt", "x\n")), 0o644))
		young = old
		young.bin = bin
		return old, young, func() string { return strings.TrimSpace(old.git("rev-parse", gitstore.LedgerRef)) }
	}

	t.Run("1.0 began", func(t *testing.T) {
		old, young, tip := start(t)
		id, _ := old.run(0, "-q", "review", "../new.patch")
		id = strings.TrimSpace(id)
		young.run(0, "audit")
		before := tip()
		young.run(0, "approve", id, "--fingerprint", fingerprintOf(t, old, id))
		old.run(0, "apply", id)
		young.run(0, "validate", id)
		for _, s := range []playground{old, young} {
			s.run(0, "audit")
			s.run(0, "validate", id)
		}
		if schema := old.git("show", gitstore.LedgerRef+":ledger.json"); !strings.Contains(schema, `"schema_version":"1.0"`) || tip() == before {
			t.Errorf("%s", schema)
		}
	})

	t.Run("1.1 began", func(t *testing.T) {
		old, young, tip := start(t)
		id, _ := young.run(0, "-q", "review", "../new.patch")
		id = strings.TrimSpace(id)
		fingerprint := fingerprintOf(t, young, id)
		young.run(0, "audit")
		before := tip()
		for _, args := range [][]string{
			{"list"}, {"show", id}, {"diff", id}, {"log", id}, {"gate", id}, {"approve", id, "--fingerprint", fingerprint}, {"deny", id, "--fingerprint", fingerprint},
			{"apply", id}, {"run", id}, {"run", "--all"}, {"validate", id}, {"close", id}, {"review", "../new.patch"}, {"review", "--again", id}, {"report", id},
			{"export", id, "--out", "o"}, {"audit"}, {"audit", "--commit", "HEAD"}, {"audit", "--branch", "main"}, {"attest", id}, {"site", "--out", "../pages"},
		} {
			code, out, errs := runIn(old.repo, old.getenv, args...)
			if code != console.ExitNewer || !strings.Contains(errs, "was written by a newer countersign, needs at least 1.1") || strings.Contains(errs+out, "damaged") || strings.Contains(out, "approved") {
				t.Errorf("%s: exit %d\n%s%s", args, code, out, errs)
			}
		}
		if out, _ := old.run(console.ExitFailed, "evidence", "--branch", "main"); !strings.Contains(out, "unreadable: the ledger was written by a newer countersign") { // of many repositories it is one
			t.Errorf("%s", out)
		}
		old.run(console.ExitRefused, "ledger", "accept-tip", before, "--reason", "x")
		if tip() != before || old.git("status", "--porcelain") != "" {
			t.Errorf("something was written: %s, %s", tip(), old.git("status", "--porcelain"))
		}
		young.run(0, "approve", id, "--fingerprint", fingerprint)
		young.run(0, "apply", id)
		young.run(0, "audit")
	})

	t.Run("an artifact of 2.0", func(t *testing.T) {
		old, _, _ := start(t)
		id, _ := old.run(0, "-q", "review", "../new.patch")
		id = strings.TrimSpace(id)
		fingerprint := fingerprintOf(t, old, id)
		made := old.later(id)
		check(t, os.RemoveAll(filepath.Join(old.repo, ".git", "countersign"))) // as somebody who fetches it
		old.git("update-ref", gitstore.LedgerRef, made)
		for _, args := range [][]string{
			{"audit"}, {"gate", id}, {"approve", id, "--fingerprint", fingerprint}, {"deny", id, "--fingerprint", fingerprint}, {"apply", id}, {"run", id}, {"validate", id},
			{"close", id}, {"attest", id},
		} {
			code, out, errs := runIn(old.repo, old.getenv, args...)
			if code != console.ExitNewer || !strings.Contains(out+errs, "was written by a newer countersign, needs at least 2.0") || strings.Contains(errs+out, "damaged") || strings.Contains(out, "approved") {
				t.Errorf("%s: exit %d\n%s%s", args, code, out, errs)
			}
		}
		if tip := strings.TrimSpace(old.git("rev-parse", gitstore.LedgerRef)); tip != made {
			t.Errorf("something was written: %s", tip)
		}
	})

	t.Run("a Policy of 1.1", func(t *testing.T) {
		old, _, _ := start(t)
		id, _ := old.run(0, "-q", "review", "../new.patch")
		id = strings.TrimSpace(id)
		fingerprint := fingerprintOf(t, old, id)
		old.run(0, "approve", id, "--fingerprint", fingerprint)
		for _, version := range []string{"1.1", "2"} {
			old.write(".github/countersign.yml", "version: "+version+"\nweather: rain\n")
			old.git("add", ".")
			old.git("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-q", "-m", "newer")
			for _, args := range [][]string{{"policy", "check"}, {"gate", id}, {"apply", id}, {"approve", id, "--fingerprint", fingerprint}, {"review", "../new.patch"}} {
				code, out, errs := runIn(old.repo, old.getenv, args...)
				if code != console.ExitNewer || !strings.Contains(errs, "the Policy was written by a newer countersign, needs at least ") || strings.Contains(errs, "not known") {
					t.Errorf("%s with version: %s: exit %d\n%s%s", args, version, code, out, errs)
				}
			}
		}
	})
}

// later makes the commit of a review again as one whose list of risks is of a later schema.
func (s playground) later(id string) (commit string) {
	s.t.Helper()
	dir := gitstore.LedgerRef + ":" + ledger.Dir(id) + "/"
	object := func(kind, content string) string {
		file := filepath.Join(s.dir, "object")
		check(s.t, os.WriteFile(file, []byte(content), 0o644))
		return strings.TrimSpace(s.git("hash-object", "-w", "-t", kind, file))
	}
	s.git("read-tree", gitstore.LedgerRef)
	put := func(name, content string) {
		s.git("update-index", "--add", "--cacheinfo", "100644,"+object("blob", content)+","+ledger.Dir(id)+"/"+name)
	}
	events, prev := "", any(nil)
	for line := range strings.Lines(s.git("cat-file", "blob", dir+"events.jsonl")) {
		doc, err := canon.Parse([]byte(line))
		check(s.t, err)
		event := doc.(map[string]any)
		if p := event["payload"].(map[string]any); p["kind"] == "risks" {
			old := p["path"].(string)
			content := strings.Replace(s.git("cat-file", "blob", dir+old), "countersign/risks/1", "countersign/risks/2", 1)
			sum := canon.Hex([]byte(content))
			p["artifact_id"], p["path"], p["stored_sha256"] = sum, ledger.ArtifactFile(sum), "sha256:"+sum
			s.git("update-index", "--force-remove", ledger.Dir(id)+"/"+old)
			put(ledger.ArtifactFile(sum), content)
		}
		event["prev"] = prev
		raw, err := canon.Line(event)
		check(s.t, err)
		events, prev = events+string(raw), canon.Sum(raw)
	}
	put("events.jsonl", events)
	log, err := ledger.ReadLog([]byte(events))
	check(s.t, err)
	state, err := canon.Line(log.Transaction())
	check(s.t, err)
	put("transaction.json", string(state))
	_, rest, _ := strings.Cut(s.git("cat-file", "commit", gitstore.LedgerRef), "\n")
	made := object("commit", "tree "+s.git("write-tree")+rest)
	s.git("read-tree", "HEAD")
	return made
}

// fingerprintOf is what the approval of a transaction is about.
func fingerprintOf(t *testing.T, s playground, id string) string {
	t.Helper()
	out, _ := s.run(0, "show", id, "--json")
	_, rest, found := strings.Cut(out, `"fingerprint":"`)
	fingerprint, _, ends := strings.Cut(rest, `"`)
	if !found || !ends {
		t.Fatalf("no fingerprint: %s", out)
	}
	return fingerprint
}
