package github

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

func checkOf(title string, annotations int) forge.Check {
	run := forge.Check{
		Name: "countersign/0123456789ab", Title: title, Summary: "s", Text: "t", Status: "completed", Conclusion: "neutral",
		DetailsURL: "https://forge.test/details", ExternalID: "tx_1",
	}
	for i := range annotations {
		run.Annotations = append(run.Annotations, forge.Annotation{Path: "greet.go", StartLine: i + 1, EndLine: i + 1, Level: "failure", Title: "refused", Message: "why"})
	}
	return run
}

func TestPublishCheck(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	head := w.Pull(site, 1).Head
	w.ResetRequests()
	first, err := forge.Publish(ctx, w.client, head, checkOf("pending", 0))
	if err != nil || first.URL == "" || first.App != "github-actions" || first.AppID == 0 || first.ExternalID != "tx_1" || first.Head != head {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := forge.Publish(ctx, w.client, head, checkOf("applied", 120))
	if err != nil || again.ID != first.ID {
		t.Fatalf("%+v, %v", again, err)
	}
	if n := w.Count(); n.API != 6 || n.Writes != 4 {
		t.Errorf("%+v requests, want two looks, a creation, and one update for each 50 annotations", n)
	}
	third, err := forge.Publish(ctx, w.client, head, checkOf("applied", 120))
	if err != nil || third.Annotations != 120 {
		t.Errorf("annotations are sent twice: %+v, %v", third, err)
	}
	runs := w.CheckRuns(site, head)
	if len(runs) != 1 || runs[0].Title != "applied" || runs[0].Annotations != 120 || runs[0].Conclusion != "neutral" {
		t.Errorf("check runs %+v", runs)
	}
}

// TestStoreAttestation: a bundle is found by the SHA-256 of what it is about, and takes the right
// to write attestations; an answer without a number is an error.
func TestStoreAttestation(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	digest := strings.Repeat("ab", 32)
	payload := base64.StdEncoding.EncodeToString([]byte(`{"subject":[{"digest":{"gitCommit":"00"}},{"digest":{"sha256":"` + digest + `"}}]}`))
	bundle := []byte(`{"dsseEnvelope":{"payload":"` + payload + `"},"mediaType":"x","verificationMaterial":{}}`)
	if _, err := w.client.StoreAttestation(ctx, bundle); err == nil {
		t.Error("a token without the right stores one")
	}
	may := w.as(w.ActionsToken(site, "attestations:write"))
	id, err := may.StoreAttestation(ctx, bundle)
	if found := w.Attestations(site, digest); err != nil || len(found) != 1 || strconv.FormatInt(found[0].ID, 10) != id {
		t.Errorf("%q %v %+v", id, err, found)
	}
	if _, err := may.StoreAttestation(ctx, []byte(`{"dsseEnvelope":{}}`)); err == nil {
		t.Error("what is no bundle is stored")
	}
	for _, answer := range []string{"{}", `{"id":0}`, "[]", ""} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, answer)
		}))
		c, err := New(Options{APIURL: server.URL, Repository: site, Token: "t", Wait: w.waits.wait, Timeout: 10 * time.Second})
		teststand.Fatal(t, err)
		if id, err := c.StoreAttestation(ctx, bundle); err == nil {
			t.Errorf("%s: %s", answer, id)
		}
		server.Close()
	}
}

// T60: the run of another app is left alone.
func TestT60CheckOfAnotherApp(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	head := w.Pull(site, 1).Head
	other := w.as(w.AppToken(githubtest.AppToken{Bot: "helper[bot]", Repositories: []string{site}, Permissions: map[string]string{"checks": "write"}}))
	forged, err := forge.Publish(ctx, other, head, checkOf("success", 0))
	teststand.Fatal(t, err)
	own, err := forge.Publish(ctx, w.client, head, checkOf("pending", 0))
	if err != nil || own.ID == forged.ID || own.App == forged.App {
		t.Fatalf("%+v beside %+v, %v", own, forged, err)
	}
	runs, err := w.client.CheckRuns(ctx, head, own.Name)
	if err != nil || len(runs) != 2 || runs[0].ID != own.ID || runs[1].App != "helper" {
		t.Errorf("check runs %+v, %v", runs, err)
	}
	if _, err := forge.Publish(ctx, w.client, "main", checkOf("pending", 0)); err == nil {
		t.Error("a branch is taken for a commit")
	}
}

// T61: a list of check runs that is not whole is none.
func TestT61CheckRuns(t *testing.T) {
	server := newScript(t, step{body: `{"total_count":2,"check_runs":[{"id":1,"name":"countersign"}]}`})
	_, err := newClient(t, server.URL, &pauses{}).CheckRuns(context.Background(), theCommit, "countersign")
	checkKind(t, err, rest.KindAnswer)
}

func TestReviewThread(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	head := w.Pull(site, 1).Head
	w.ReviewComment(githubtest.NewComment{Repository: site, Number: 1, By: "ada", Body: "another", Path: "greet.go"})
	asked, err := w.client.CreateReviewComment(ctx, 1, head, "greet.go", "please\r\nlook")
	if err != nil || asked.Kind != approval.KindReviewComment {
		t.Fatalf("%+v, %v", asked, err)
	}
	id, _ := strconv.ParseInt(asked.ID, 10, 64)
	if got := w.statement(id); asked.BodySHA256 != canon.Sum([]byte(got.Body)) || got.Commit != head || got.ReplyTo != "" || got.Author.Login != "github-actions" {
		t.Errorf("%+v, posted as %+v", got, asked)
	}
	weak := w.as(w.ActionsToken(site, "pull_requests:read"))
	if ok, err := weak.ResolveThread(ctx, 1, asked.ID); ok || err != nil {
		t.Errorf("a token that may not: %v, %v", ok, err)
	}
	if ok, err := w.client.ResolveThread(ctx, 1, "12345"); ok || err != nil {
		t.Errorf("no such thread: %v, %v", ok, err)
	}
	for range 2 {
		if ok, err := w.client.ResolveThread(ctx, 1, asked.ID); !ok || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
	}
	for _, c := range w.ReviewComments(site, 1) {
		if c.Resolved != (c.ID == id) {
			t.Errorf("%+v", c)
		}
	}
	_, err = w.client.CreateReviewComment(ctx, 1, head, "README.md", "not in the diff")
	checkKind(t, err, rest.KindRefused)
}

// A write whose answer is lost is not repeated, and one that a limit refused is.
func TestWritesOnce(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	for i, f := range []githubtest.Fault{{Kind: githubtest.Cut, After: true}, {Status: 502, After: true}, {Kind: githubtest.Truncate}} {
		f.Method = "POST"
		w.Fail(f)
		_, err := w.client.UpsertComment(ctx, 1, "", fmt.Sprint("lost ", i))
		checkKind(t, err, rest.KindNetwork)
	}
	w.Fail(githubtest.Fault{Method: "POST", Kind: githubtest.SecondaryLimit, Seconds: 5})
	if _, err := w.client.UpsertComment(ctx, 1, "", "waited"); err != nil {
		t.Error(err)
	}
	var bodies []string
	for _, c := range w.Comments(site, 1) {
		bodies = append(bodies, c.Body)
	}
	if got := strings.Join(bodies, ", "); got != "lost 0, lost 1, lost 2, waited" {
		t.Errorf("comments %s", got)
	}
}

func TestWritesWithoutPermission(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	weak := w.as(w.ActionsToken(site, "contents:read", "pull_requests:read", "issues:read", "checks:read"))
	head := w.Pull(site, 1).Head
	_, err := weak.UpsertComment(ctx, 1, "", "x")
	checkKind(t, err, rest.KindPermission)
	_, err = weak.CreateReviewComment(ctx, 1, head, "greet.go", "x")
	checkKind(t, err, rest.KindPermission)
	_, err = forge.Publish(ctx, weak, head, checkOf("pending", 0))
	checkKind(t, err, rest.KindPermission)
	_, err = w.client.UpsertComment(ctx, 1, "../7", "x")
	checkKind(t, err, rest.KindAnswer)
	_, err = w.as("no such token").UpsertComment(ctx, 1, "", "x")
	checkKind(t, err, rest.KindAuth)
}
