package github

import (
	"archive/zip"
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

func TestRun(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	head := w.Pull(site, 1).Head
	w.Fork(site, "eve/site")
	w.Push(githubtest.NewCommit{Repository: "eve/site", Branch: "idea", By: "eve", Message: "idea", Files: map[string]string{"idea.go": "package greet\n"}})
	own := w.WorkflowRun(githubtest.NewWorkflowRun{
		Repository: site, HeadRepository: site, HeadBranch: "fix", Name: "propose", Path: ".github/workflows/propose.yml", Event: "push",
		Status: "completed", Conclusion: "success", By: "eve",
	})
	fork := w.WorkflowRun(githubtest.NewWorkflowRun{
		Repository: site, HeadRepository: "eve/site", HeadBranch: "idea", Name: "propose", Path: ".github/workflows/propose.yml", Event: "pull_request",
		Status: "completed", Conclusion: "success", By: "eve",
	})
	runs, err := w.client.EndedRuns(ctx, "fix", "success", time.Time{})
	if err != nil || len(runs) != 1 {
		t.Fatalf("%+v, %v", runs, err)
	}
	got := runs[0]
	if got.HeadCommit != head || got.HeadBranch != "fix" || got.HeadOwner != "acme" || got.HeadRepository.Name != site ||
		got.Workflow != ".github/workflows/propose.yml" || got.Event != "push" || got.Conclusion != "success" || got.ID != own {
		t.Errorf("%+v, %v", got, err)
	}
	runs, err = w.client.PullRuns(ctx, w.Ref("eve/site", "refs/heads/idea"), time.Time{})
	if err != nil || len(runs) != 1 || runs[0].ID != fork || runs[0].HeadOwner != "eve" || runs[0].HeadRepository.Name != "eve/site" {
		t.Errorf("%+v, %v", runs, err)
	}
}

func TestWorkflowOf(t *testing.T) {
	for told, want := range map[string]string{
		".github/workflows/a.yml":              ".github/workflows/a.yml",
		".github/workflows/a.yml@main":         ".github/workflows/a.yml",
		"o/n/.github/workflows/a.yml@refs/x@y": ".github/workflows/a.yml",
		"evil/n/.github/workflows/a.yml@main":  "evil/n/.github/workflows/a.yml",
		"dynamic/pages/pages-build-deployment": "dynamic/pages/pages-build-deployment",
		"o/n/o/n/.github/workflows/a.yml":      "o/n/.github/workflows/a.yml",
		"":                                     "",
	} {
		if got := workflowOf(told, "o/n"); got != want {
			t.Errorf("%s: %s, want %s", told, got, want)
		}
	}
}

// archive is a zip of names and contents, in turn.
func archive(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := z.Create(files[i])
		if err == nil {
			_, err = f.Write([]byte(files[i+1]))
		}
		teststand.Fatal(t, err)
	}
	teststand.Fatal(t, z.Close())
	return b.Bytes()
}

// T22: an artifact is data of a size that was set, and nothing of it is a path.
func TestT22Unzip(t *testing.T) {
	bomb := archive(t, "bundle.json", strings.Repeat("0", 10<<20))
	if len(bomb) > 100<<10 {
		t.Fatalf("the bomb has %d bytes", len(bomb))
	}
	broken := archive(t, "bundle.json", "{ }")
	i := bytes.Index(broken, []byte("bundle.json")) + len("bundle.json")
	broken[i+2] ^= 0xff
	lying := bytes.ReplaceAll(bomb, []byte{0x00, 0x00, 0xa0, 0x00}, []byte{0x05, 0x00, 0x00, 0x00}) // its size, as it says
	for _, row := range []struct {
		name string
		data []byte
		want string // "" for an error
	}{
		{"one file", archive(t, "bundle.json", "{}"), "{}"},
		{"as long as it may be", archive(t, "bundle.json", "0123456789"), "0123456789"},
		{"one too long", archive(t, "bundle.json", "0123456789a"), ""},
		{"beside others", archive(t, "../../etc/passwd", "x", "/bundle.json", "x", "bundle.json", "{}", "a/bundle.json", "x"), "{}"},
		{"two of the name", archive(t, "bundle.json", "{}", "bundle.json", "[]"), ""},
		{"none", archive(t, "./bundle.json", "{}", "Bundle.json", "{}"), ""},
		{"empty", archive(t), ""},
		{"a bomb", bomb, ""},
		{"a bomb that says it is small", lying, ""},
		{"damaged", broken, ""},
		{"not a zip", []byte("PK\x03\x04 and so on"), ""},
		{"nothing", nil, ""},
	} {
		got, err := rest.Unzip(row.data, 10)
		if string(got) != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%s: %.20q, %v", row.name, got, err)
		}
		if err != nil {
			checkKind(t, err, rest.KindAnswer)
		}
	}
}

func TestArtifact(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	run := w.WorkflowRun(githubtest.NewWorkflowRun{
		Repository: site, HeadRepository: site, HeadBranch: "fix", Name: "propose", Path: ".github/workflows/propose.yml", Event: "push",
		Status: "completed", Conclusion: "success", By: "eve",
	})
	put := func(name, content string) {
		w.Artifact(githubtest.NewArtifact{Repository: site, Run: run, Name: name, Files: map[string]string{"bundle.json": content, "log.txt": "x"}})
	}
	put("bundle", "the first attempt")
	put("bundle", "the second attempt")
	put("bundle-old", "another")
	got, err := w.client.Artifact(ctx, run, "bundle", 1000)
	if err != nil || string(got) != "the second attempt" {
		t.Errorf("%q, %v", got, err)
	}
	w.Artifact(githubtest.NewArtifact{Repository: site, Run: run, Name: "large", Bytes: bytes.Repeat([]byte("x"), rest.ZipOverhead+101)})
	_, err = w.client.Artifact(ctx, run, "large", 100)
	checkKind(t, err, rest.KindAnswer)
	_, err = w.client.Artifact(ctx, run, "bundle", 5)
	checkKind(t, err, rest.KindAnswer)
	_, err = w.client.Artifact(ctx, run, "absent", 5)
	checkKind(t, err, rest.KindNotFound)
	w.Artifact(githubtest.NewArtifact{Repository: site, Run: run, Name: "bundle", Expired: true, Files: map[string]string{"bundle.json": "{}"}})
	_, err = w.client.Artifact(ctx, run, "bundle", 1000)
	checkKind(t, err, rest.KindNotFound)
	for _, r := range w.Requests() {
		if r.Kind == "download" && r.Status == 400 {
			t.Error("the token was sent along with a download")
		}
	}
	put("bundle", "once more")
	for _, f := range []githubtest.Fault{{Status: 503}, {Kind: githubtest.Cut}, {Kind: githubtest.Truncate}} {
		f.Method = "GET"
		f.Skip = 2 // the list, and where it is
		w.Fail(f)
		if got, err := w.client.Artifact(ctx, run, "bundle", 1000); err != nil || string(got) != "once more" {
			t.Errorf("%+v: %q, %v", f, got, err)
		}
		w.Heal()
	}
}
