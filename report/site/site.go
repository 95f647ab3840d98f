// Package site makes the pages of a whole ledger around those of its transactions: an overview,
// lists by month, person, path, patch, commit and pull request, and a search. It is pure: every
// file is a function of summaries of the transactions and of Options, and is made when it is asked
// for, so that nobody holds all of them.
//
// An address is a file's path from the site's root. Each page links to others by relative ones,
// and search loads its index as scripts, so that a site works from a directory as well as from
// a server. Of what is foreign, only ids in hex and numbers are in addresses; people and paths are
// there by a hash.
package site

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/html"
)

// Options are what a site is given beside its transactions.
type Options struct {
	Now      time.Time     // until when something has waited
	Due      time.Duration // within which people are to decide, 0 for ever
	Name     string        // of the repository, "" where it is not known
	Ref, Tip string        // of the ledger
	Links    forge.Links   // as html.Options has it
	Nav      []html.Link
	Found    []history.Finding // of the ledger as a whole: every page has them on top
	Differ   int               // how often pages in the ledger itself differ from the record
	// Exceptions are those of the default branch that the Policy has people review; Untold says that what these are is not known.
	Exceptions []explain.Exception
	Untold     bool
}

// A Site is made of summaries. Several goroutines may use it.
type Site struct {
	o      Options
	all    []html.Summary     // by id, so the oldest first
	groups map[string][]int   // transactions by the address of what they have in common, ascending
	people map[string]*person // by address
	paths  map[string]string  // path by address
	index  func() index
}

type person struct {
	ledger.Actor
	Proposed, Approved, Denied int
	Own                        int // approved that they proposed themselves
}

func (p *person) sum() int { return p.Proposed + p.Approved + p.Denied }

// unnamed stands for a repository whose name is not known.
const unnamed = "this repository"

// Nav are the links on each page of a repository's site: the first one, to the overview, is its name. The
// verifier has one where the site has a verifier.
func Nav(name string, verifier bool) []html.Link {
	nav := []html.Link{
		{Address: overviewAddress, Text: escape.ShortenTo(cmp.Or(name, unnamed), 100)}, {Address: monthsAddress, Text: "All changes"}, {Address: peopleAddress, Text: "People"},
		{Address: pathsAddress, Text: "Files"}, {Address: searchAddress, Text: "Search"},
	}
	if verifier {
		nav = append(nav, html.Link{Address: "verify/index.html", Text: "Verify"})
	}
	return nav
}

// The addresses of the pages that every site has.
const (
	overviewAddress = "index.html"
	monthsAddress   = "month/index.html"
	peopleAddress   = "person/index.html"
	pathsAddress    = "path/index.html"
	searchAddress   = "search/index.html"
	page            = "/index.html"
)

// Transaction is the address of a transaction's page.
func Transaction(id string) string { return "tx/" + id + ".html" }

// Person is the address of a person's page. An account is its kind and its id.
func Person(a ledger.Actor) string {
	return "person/" + key(a.Kind+"\x00"+cmp.Or(a.ID, a.Login)) + page
}

// Path is the address of a path's page.
func Path(name string) string { return "path/" + key(name) + page }

// key is a safe file name for a foreign one: nobody finds another with the same.
func key(name string) string { return canon.Hex([]byte(name))[:40] }

// New prepares a site. The summaries are those of different transactions, in any order.
func New(all []html.Summary, o Options) *Site {
	o.Name = escape.ShortenTo(cmp.Or(o.Name, unnamed), 100)
	s := &Site{o: o, all: slices.Clone(all), groups: map[string][]int{}, people: map[string]*person{}, paths: map[string]string{}}
	slices.SortFunc(s.all, func(a, b html.Summary) int { return strings.Compare(a.ID, b.ID) })
	for i := range s.all {
		s.add(i)
	}
	s.index = sync.OnceValue(s.newIndex)
	return s
}

// add notes what a transaction has in common with others, each once: the month of its id, how it stands, its people, its patch,
// commits and pull request, and its paths.
func (s *Site) add(i int) {
	t := &s.all[i]
	join := func(group string) {
		if in := s.groups[group]; len(in) == 0 || in[len(in)-1] != i {
			s.groups[group] = append(in, i)
		}
	}
	meet := func(a ledger.Actor) *person {
		group := strings.TrimSuffix(Person(a), page)
		if a != (ledger.Actor{}) {
			join(group)
		}
		p := cmp.Or(s.people[group], &person{})
		p.Actor, s.people[group] = a, p
		return p
	}
	day := strings.Split(ledger.Dir(t.ID), "/")
	join("month/" + day[1] + "-" + day[2])
	join(standings[outcomeOf(t)].group())
	if t.Own && t.Sound() {
		join(own.group())
	}
	if t.Proposer != (ledger.Actor{}) {
		meet(t.Proposer).Proposed++
	}
	for _, a := range t.Approvers {
		if meet(a).Approved++; isOwn(t, a) {
			meet(a).Own++
		}
	}
	for _, a := range t.Deniers {
		meet(a).Denied++
	}
	for _, a := range t.Others {
		meet(a)
	}
	if canon.IsHex64(t.PatchID) {
		join("patch/" + t.PatchID)
	}
	for _, c := range t.Commits {
		if canon.IsGitID(c) {
			join("commit/" + c)
		}
	}
	if t.PullRequest > 0 {
		join("pull/" + strconv.Itoa(t.PullRequest))
	}
	for _, name := range t.Paths {
		group := strings.TrimSuffix(Path(name), page)
		join(group)
		s.paths[group] = name
	}
}

// has reports whether a group has a page: what few would look for only where several transactions have it.
func (s *Site) has(group string) bool {
	kind, _, _ := strings.Cut(group, "/")
	return len(s.groups[group]) >= max(1, map[string]int{"patch": 2, "commit": 2, "pull": 2, "path": 2}[kind])
}

// Has reports whether the site has the page of what transactions have in common at an address.
func (s *Site) Has(address string) bool { return s.has(strings.TrimSuffix(address, page)) }

// Addresses are those of all files of the site but the transactions' own pages, in no order.
func (s *Site) Addresses() []string {
	out := slices.Collect(maps.Keys(fixed))
	for n := 0; n*perBlock < len(s.all); n++ {
		out = append(out, indexDir+"t/"+strconv.Itoa(n)+".js")
	}
	for shard := range s.index().shards {
		out = append(out, indexDir+shard+".js")
	}
	for g, in := range s.groups {
		for n := 0; s.has(g) && n*perPage < len(in); n++ {
			out = append(out, chunk(g, n))
		}
	}
	return out
}

// fixed are the files that every site has.
var fixed = map[string]func(*Site) []byte{
	overviewAddress: (*Site).overview, monthsAddress: (*Site).allMonths, peopleAddress: (*Site).allPeople, pathsAddress: (*Site).allPaths, searchAddress: (*Site).searchPage,
	scriptAddress:  func(*Site) []byte { return searchScript },
	html.StyleFile: func(*Site) []byte { return html.Style() }, html.IconFile: func(*Site) []byte { return html.Icon() },
}

// File makes a file, and reports whether the site has it.
func (s *Site) File(address string) ([]byte, bool) {
	if made := fixed[address]; made != nil {
		return made(s), true
	}
	if name, ok := strings.CutPrefix(address, indexDir); ok {
		return s.indexFile(name)
	}
	dir, ok := strings.CutSuffix(address, page)
	if !ok {
		return nil, false
	}
	return s.groupPage(dir)
}
