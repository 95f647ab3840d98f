package github

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

func TestInstalled(t *testing.T) {
	w := newWorld(t)
	names := []string{site}
	for i := range 100 {
		name := fmt.Sprintf("acme/repository-%d", i)
		w.Repository(githubtest.NewRepository{Name: name})
		names = append(names, name)
	}
	token := func(permissions map[string]string) *Client {
		return w.as(w.AppToken(githubtest.AppToken{Bot: "helper[bot]", Repositories: names, Permissions: permissions}))
	}
	c := token(map[string]string{"actions": "write"})
	found, err := c.Installed(context.Background())
	teststand.Fatal(t, err)
	if len(found) != len(names) || !slices.Contains(found, Installed{Name: site, Branch: "main"}) {
		t.Errorf("%d of %d: %+v", len(found), len(names), found)
	}
	w.Fail(githubtest.Fault{Path: "/api/v3/installation/repositories", Skip: 1, Kind: githubtest.EmptyPage})
	if found, err := c.Installed(context.Background()); err == nil {
		t.Errorf("a page is missing, and %d are taken for all", len(found))
	}
	if _, err := w.as(w.Token("ada")).Installed(context.Background()); !rest.IsKind(err, rest.KindPermission) {
		t.Errorf("a person's token: %v", err)
	}
}

func TestStartWorkflow(t *testing.T) {
	w := newWorld(t)
	w.Repository(githubtest.NewRepository{Name: "acme/other", Files: map[string]string{".github/workflows/fleet.yml": "on: workflow_dispatch\n"}})
	c := w.as(w.AppToken(githubtest.AppToken{Bot: "helper[bot]", Repositories: []string{site, "acme/other"}, Permissions: map[string]string{"actions": "write"}}))
	ctx := context.Background()
	if err := c.StartWorkflow(ctx, "acme/other", "fleet.yml", "main"); err != nil {
		t.Error(err)
	}
	if err := c.StartWorkflow(ctx, site, "fleet.yml", "main"); !rest.IsKind(err, rest.KindNotFound) {
		t.Errorf("without the file: %v", err)
	}
	if err := w.client.StartWorkflow(ctx, site, "fleet.yml", "main"); !rest.IsKind(err, rest.KindPermission) {
		t.Errorf("without the right: %v", err)
	}
	for _, name := range []string{"", "acme", "acme/../site", "acme/site/x"} {
		if err := c.StartWorkflow(ctx, name, "fleet.yml", "main"); !errors.As(err, new(*rest.Error)) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if got := w.Started("acme/other"); !slices.Equal(got, []string{"fleet.yml on main"}) || len(w.Started(site)) != 0 {
		t.Errorf("started: %q, %q", got, w.Started(site))
	}
}
