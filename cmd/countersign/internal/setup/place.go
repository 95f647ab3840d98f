package setup

import (
	"context"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/gitea"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/scaffold"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
)

// lookElsewhere is what can be told of the repository that keeps the ledger.
func lookElsewhere(ctx context.Context, s *session.Session, name string) *scaffold.Elsewhere {
	found := &scaffold.Elsewhere{Repository: name}
	place, err := s.Place(ctx)
	if err == nil {
		defer place.Server.Close()
		found.Ref = place.Ref
		_, err = place.Server.Tip(ctx, place.Ref)
	}
	if err != nil {
		found.Err = err
		return found
	}
	client, err := session.Forge(asLedgers(s.Console, name), s.Repo.Config)
	if err == nil && client != nil {
		found.Public, err = client.IsPublic(ctx)
	}
	if client == nil || err != nil {
		found.Err = err
		return found
	}
	found.GitHub, found.Gitea, found.Err = probe(ctx, client, place.Ref)
	return found
}

// probe asks a forge what there is to know of a repository, and of the branch that has a ledger.
func probe(ctx context.Context, client session.ForgeClient, ref string) (*github.Facts, *gitea.Facts, error) {
	branch, isBranch := strings.CutPrefix(ref, "refs/heads/")
	if !isBranch {
		branch = ""
	}
	switch client := client.(type) {
	case *github.Client:
		facts, err := client.Probe(ctx, branch)
		return &facts, nil, err
	case *gitea.Client:
		facts, err := client.Probe(ctx, branch)
		return nil, &facts, err
	}
	return nil, nil, nil
}

// asLedgers is this program where it asks the forge about the repository that keeps the ledger, with the token for that.
func asLedgers(c *console.Console, name string) *console.Console {
	there, token := *c, c.Getenv(console.LedgerTokenName)
	there.Getenv = func(variable string) string {
		switch {
		case variable == "GITHUB_REPOSITORY":
			return name
		case token == "":
		case variable == "COUNTERSIGN_TOKEN":
			return token
		case slices.Contains([]string{"INPUT_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"}, variable):
			return ""
		}
		return c.Getenv(variable)
	}
	return &there
}
