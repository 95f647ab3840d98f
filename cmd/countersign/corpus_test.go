package main

import (
	"maps"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// releases are pairs of released versions whose whole difference is compared
// with git's, with COUNTERSIGN_CORPUS_MODULES set.
var releases = []struct{ name, before, after string }{
	{"github.com/spf13/cobra", "v1.7.0", "v1.8.1"},
	{"github.com/spf13/pflag", "v1.0.5", "v1.0.6"},
	{"github.com/google/go-cmp", "v0.5.9", "v0.6.0"},
	{"github.com/google/uuid", "v1.3.0", "v1.6.0"},
	{"github.com/go-git/go-git/v5", "v5.11.0", "v5.12.0"},
	{"golang.org/x/crypto", "v0.20.0", "v0.24.0"},
	{"golang.org/x/net", "v0.20.0", "v0.26.0"},
	{"golang.org/x/sys", "v0.17.0", "v0.21.0"},
	{"golang.org/x/text", "v0.13.0", "v0.16.0"},
	{"golang.org/x/tools", "v0.20.0", "v0.22.0"},
	{"google.golang.org/protobuf", "v1.33.0", "v1.34.2"},
	{"google.golang.org/grpc", "v1.62.0", "v1.64.0"},
	{"k8s.io/api", "v0.29.0", "v0.30.0"},
	{"k8s.io/client-go", "v0.29.0", "v0.30.0"},
}

// The difference between two releases, written by the real git in several
// ways, resolves to the second release, file for file, and to one patch_id.
func TestReleaseCorpus(t *testing.T) {
	t.Parallel()
	if os.Getenv("COUNTERSIGN_CORPUS_MODULES") == "" {
		t.Skip("set COUNTERSIGN_CORPUS_MODULES to compare the releases of real modules")
	}
	for _, m := range releases {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			before, after := download(t, m.name, m.before), download(t, m.name, m.after)
			s := newSandbox(t, before)
			s.git("init", "-q", "-b", "main")
			s.git("config", "core.autocrlf", "false")
			s.commit()
			s.replace(before, after)
			s.git("add", "-A")
			base := fstest.MapFS{}
			for name, content := range before {
				base[name] = &fstest.MapFile{Data: []byte(content), Mode: 0o644}
			}
			ids := map[string]bool{}
			files := 0
			for _, how := range [][]string{{"-U3"}, {"-U0", "--no-renames"}, {"-M", "-C", "--patience"}, {"-B", "-M", "-U8"}} {
				diff := s.git(append([]string{"diff", "--cached", "--binary"}, how...)...)
				parsed, err := gitpatch.Parse([]byte(diff))
				check(t, err)
				set, err := parsed.Resolve(base)
				check(t, err)
				ids[set.ID()] = true
				files = len(set.Files())
				compareTree(t, how, before, after, set)
			}
			if len(ids) != 1 {
				t.Errorf("%d patch_ids", len(ids))
			}
			t.Logf("%d files differ", files)
		})
	}
}

func compareTree(t *testing.T, how []string, before, after map[string]string, set patch.Patchset) {
	t.Helper()
	got := maps.Clone(before)
	for _, f := range set.Files() {
		delete(got, f.Path)
		if f.After != nil {
			got[f.Path] = string(f.After.Data)
		}
	}
	if !maps.Equal(got, after) {
		t.Errorf("%s: the files are not those of the second release", strings.Join(how, " "))
	}
}
