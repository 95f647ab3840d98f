package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/report"
)

// fetchedAtOnce is how many repositories are fetched and judged at the same time.
const fetchedAtOnce = 6

// Repositories are those that a file lists, or of an app's installation.
type Repositories struct {
	File      string
	Installed bool
	Branch    string // of those that the list names none for, "" for the default one
	Cache     string // the directory that keeps what is fetched, "" for the usual one
}

// A Looked is what was made of one of several repositories, or why nothing was.
type Looked[T any] struct {
	Listed   evidence.Listed
	Is       T
	NoLedger bool // and so nothing
	Err      error
}

// Each fetches repositories, several at the same time, and makes something of each, in their order. Of one without a ledger nothing is made.
func Each[T any](ctx context.Context, a *console.Console, of Repositories, each func(Fetched) (T, error)) ([]Looked[T], error) {
	listed, err := of.listed(ctx, a)
	if err != nil {
		return nil, err
	}
	cache, err := of.directory(a)
	if err != nil {
		return nil, err
	}
	base, err := filepath.Abs(a.From(a.Flags.Dir))
	if err != nil {
		return nil, err
	}
	a.Finder() // made once, before many look at it
	c := &collector{app: a, cache: cache, base: base}
	out, done := make([]Looked[T], len(listed)), 0
	err = parallel.Try(fetchedAtOnce, len(listed), func(i int) error {
		l := listed[i]
		l.Branch = cmp.Or(l.Branch, of.Branch)
		one := Looked[T]{Listed: l}
		f, err := c.fetch(ctx, l)
		if err == nil {
			one.Is, err = each(f)
			err = errors.Join(err, f.Repo.Close())
		}
		var none *gitstore.NoRefError
		if one.NoLedger = errors.As(err, &none) && none.Ref == a.Flags.LedgerRef; !one.NoLedger {
			one.Err = err
		}
		out[i] = one
		c.mu.Lock()
		defer c.mu.Unlock()
		done++
		a.Line.Show("repositories", done, len(listed))
		return ctx.Err()
	})
	return out, err
}

// listed are the repositories, with their addresses.
func (r Repositories) listed(ctx context.Context, c *console.Console) ([]evidence.Listed, error) {
	if r.File != "" {
		raw, err := c.ReadInput(r.File, evidence.MaxListLen)
		if err != nil {
			return nil, err
		}
		listed, err := evidence.ParseList(string(raw))
		if err != nil {
			err = &console.UsageError{Message: fmt.Sprintf("%s: %v", report.Clean(r.File), err), Hint: "a line looks like: acme/shop https://github.com/acme/shop.git"}
		}
		return listed, err
	}
	_, repositories, err := Installed(ctx, c)
	if err != nil {
		return nil, err
	}
	text, server := "", cmp.Or(c.Getenv("GITHUB_SERVER_URL"), "https://github.com")
	for _, one := range repositories {
		text += fmt.Sprintf("%s %s/%[1]s.git %s\n", one.Name, server, one.Branch)
	}
	listed, err := evidence.ParseList(text) // held to the same rules as what a person lists
	if err != nil {
		err = fmt.Errorf("the repositories of the app's installation: %w", err)
	}
	return listed, err
}

// directory is the directory that keeps what is fetched, in full.
func (r Repositories) directory(c *console.Console) (string, error) {
	name := r.Cache
	dir := c.Path(name)
	if name == "" {
		if dir = c.Own("XDG_CACHE_HOME", ".cache"); dir == "" {
			return "", &console.UsageError{Message: "HOME is not set, and so there is no place to fetch to", Hint: "name one with --cache DIR"}
		}
		dir = filepath.Join(dir, "evidence")
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return "", console.FileError(report.Clean(cmp.Or(name, dir)), err)
	}
	return dir, nil
}

// A collector fetches repositories into a cache, several at the same time.
type collector struct {
	app         *console.Console
	cache, base string     // base is where the paths of a list begin
	mu          sync.Mutex // for what of app is not for several goroutines
}

// A Fetched repository of a list is up to date, its ledger open, and its Policy that of the default branch.
type Fetched struct {
	*Session
	Listed    evidence.Listed
	Policy    policy.Policy
	Ref, Head string // of the branch, and the commit of the default one
	On        forge.Links
}

// fetch brings a repository's branch and ledger up to date. Whoever has it closes its Repo.
func (c *collector) fetch(ctx context.Context, l evidence.Listed) (part Fetched, err error) {
	repo, err := c.open(l)
	if err != nil {
		return part, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, repo.Close())
		}
	}()
	server, links, err := c.server(repo, l)
	if err != nil {
		return part, err
	}
	defer server.Close()
	fetch := func(ref, as string) (string, error) {
		commit, err := repo.Fetch(ctx, server, ref, true)
		if err != nil {
			return "", err
		}
		before, err := repo.Ref(ctx, as)
		if err == nil && before != commit {
			err = repo.MoveRef(ctx, as, before, commit)
		}
		return commit, err
	}
	const ours = "refs/countersign/evidence/"
	head, err := fetch("HEAD", ours+"head")
	if err != nil {
		return part, err
	}
	ref := ours + "head"
	if l.Branch != "" {
		ref = ours + "branch"
		if _, err := fetch("refs/heads/"+l.Branch, ref); err != nil {
			return part, err
		}
	}
	tree, err := repo.Tree(ctx, head)
	if err != nil {
		return part, err
	}
	rules, _, err := policy.Read(tree)
	if err != nil {
		return part, err
	}
	if rules.Ledger.Repository != "" {
		return part, fmt.Errorf("its ledger is kept in %+q, which is not followed here: run evidence in a clone of it after countersign sync", rules.Ledger.Repository)
	}
	ledgerRef := c.app.Flags.LedgerRef
	if _, err := fetch(ledgerRef, ledgerRef); err != nil {
		return part, err
	}
	s := &Session{Console: c.app, Repo: repo}
	if _, err := s.OpenLedger(); err != nil {
		return part, err
	}
	return Fetched{s, l, rules, ref, head, links}, nil
}

// open opens the cache of a repository's branch, which is called by the hash of its name and its
// address: a list has each name once, so that no two write into one at the same time.
func (c *collector) open(l evidence.Listed) (*gitstore.Repo, error) {
	at, err := wire.ParseRemote(l.Address, c.base)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.cache, canon.Hex([]byte(l.Name + " " + at.Redacted() + " " + l.Branch))[:40])
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
		return gitstore.Init(dir)
	}
	repo, err := gitstore.Open(dir)
	if err != nil {
		err = fmt.Errorf("what was fetched before, in %s, cannot be opened (delete it to fetch all again): %w", dir, err)
	}
	return repo, err
}

// server opens a repository on its server, with the credentials that there are for it, and tells
// where people see it.
func (c *collector) server(repo *gitstore.Repo, l evidence.Listed) (*wire.Server, forge.Links, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	settings, err := repo.Settings(c.app.Getenv)
	if err != nil {
		return nil, forge.Links{}, err
	}
	o, err := Credentials(c.app, l.Address, settings, "", !console.InWorkflow(c.app.Getenv))
	if err != nil {
		return nil, forge.Links{}, err
	}
	if ask := o.Credentials; ask != nil { // a person is asked one thing at a time
		o.Credentials = func(ctx context.Context, address *url.URL) (string, func(bool)) {
			c.mu.Lock()
			defer c.mu.Unlock()
			authorization, settle := ask(ctx, address)
			if settle == nil {
				return authorization, nil
			}
			return authorization, func(took bool) {
				c.mu.Lock()
				defer c.mu.Unlock()
				settle(took)
			}
		}
	}
	o.Dir, o.UserAgent = c.base, "countersign/"+console.Version()
	server, err := wire.Open(l.Address, o)
	return server, LinksOf(c.app, l.Address), err
}
