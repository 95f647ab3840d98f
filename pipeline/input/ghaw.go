package input

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// FormatGHAW is what an agent of GitHub's agentic workflows leaves behind (gh-aw, the
// artifact "agent": agent_output.json beside aw-*.patch and aw-*.bundle). It is a
// directory, not a file.
const FormatGHAW = "gh-aw"

// GHAWOutput is the file that says what the agent asks for.
const GHAWOutput = "agent_output.json"

// GHAWInfo is the file in which a run of gh-aw says of itself what it is, before its agent begins.
const GHAWInfo = "aw_info.json"

// GHAWRequesters reads who started the run, as aw_info.json has it: {"actor": "ada", …}. The agent could have
// written there too: whoever is named can only be kept from approving alone.
func GHAWRequesters(info []byte) ([]ledger.Requester, error) {
	doc, err := canon.Parse(info)
	if err != nil {
		return nil, &patch.Error{Message: GHAWInfo + ": " + err.Error()}
	}
	root, _ := doc.(map[string]any)
	login, _ := root["actor"].(string)
	if login == "" || root["event_name"] == "schedule" { // whose run names the last who changed the workflow
		return nil, nil
	}
	return NamedAll([]string{login}, ledger.AskedByGHAW)
}

// GHAW is what an agent of gh-aw asks for: the one item of its output that is
// create_pull_request or push_to_pull_request_branch. Rest are the types of the other
// items, which nobody does here.
type GHAW struct {
	Rest    []string
	summary string
	item    map[string]any
}

// ReadGHAW reads agent_output.json: {"items": [{"type": …}, …]}.
func ReadGHAW(output []byte) (GHAW, error) {
	g := GHAW{}
	fail := func(format string, args ...any) (GHAW, error) {
		return g, &patch.Error{Message: GHAWOutput + fmt.Sprintf(format, args...)}
	}
	doc, err := canon.Parse(output)
	if err != nil {
		return fail(": %v", err)
	}
	root, _ := doc.(map[string]any)
	items, is := root["items"].([]any)
	if !is {
		return fail(" has no list of items")
	}
	for i, item := range items {
		object, _ := item.(map[string]any)
		kind, is := object["type"].(string)
		switch {
		case !is:
			return fail(": item %d has no type", i+1)
		case kind != "create_pull_request" && kind != "push_to_pull_request_branch":
			g.Rest = append(g.Rest, ledger.OneLine(kind, 60))
		case g.item != nil:
			return fail(" asks for two changes: propose them one at a time")
		default:
			g.item = object
		}
	}
	if g.item == nil {
		return fail(" asks for no change")
	}
	for _, member := range []string{"title", "message", "commit_message"} {
		if text, is := g.item[member].(string); is && g.summary == "" {
			g.summary = text
		}
	}
	return g, nil
}

// IsGHAWFile reports whether a file holds a change that gh-aw wrote.
func IsGHAWFile(name string) bool {
	return name == "aw.patch" || strings.HasPrefix(name, "aw-") && (strings.HasSuffix(name, ".patch") || strings.HasSuffix(name, ".bundle"))
}

// Files says which of some files are the item's: its patch and its bundle, "" for none.
// gh-aw calls them after the item's repository and branch; an item of earlier versions
// names them. Else they are the only ones there.
func (g GHAW) Files(names []string) (patchName, bundleName string, err error) {
	patchName, bundleName = g.named(names, "patch"), g.named(names, "bundle")
	for _, kind := range []string{"patch", "bundle"} {
		if given, is := g.item[kind+"_path"]; is && (kind == "patch" && patchName == "" || kind == "bundle" && bundleName == "") {
			named, _ := given.(string)
			return "", "", &patch.Error{Message: fmt.Sprintf("the %s %+q, which the item names, is not there", kind, ledger.OneLine(path.Base(named), 80))}
		}
	}
	if patchName == "" && bundleName == "" {
		if patchName, err = only(names, "patch"); err == nil {
			bundleName, err = only(names, "bundle")
		}
	}
	if err == nil && patchName == "" && bundleName == "" {
		err = &patch.Error{Message: "neither aw-*.patch nor aw-*.bundle is there"}
	}
	return patchName, bundleName, err
}

// named is the file of a kind that is called as the item says, "" for none.
func (g GHAW) named(names []string, kind string) string {
	given, _ := g.item[kind+"_path"].(string)
	repository, _ := g.item["repo"].(string)
	branch, _ := g.item["branch"].(string)
	called := []string{"aw-" + inFileName(repository) + "-" + inFileName(branch) + "." + kind, "aw-" + inFileName(branch) + "." + kind}
	if given != "" {
		called = []string{path.Base(given)}
	}
	for _, name := range called {
		if slices.Contains(names, name) && strings.HasSuffix(name, "."+kind) {
			return name
		}
	}
	return ""
}

// only is the one file of a kind, "" for none.
func only(names []string, kind string) (string, error) {
	var fit []string
	for _, name := range names {
		if strings.HasSuffix(name, "."+kind) {
			fit = append(fit, name)
		}
	}
	if len(fit) < 2 {
		return strings.Join(fit, ""), nil
	}
	for i := range fit {
		fit[i] = ledger.OneLine(fit[i], 60)
	}
	slices.Sort(fit)
	return "", &patch.Error{Message: fmt.Sprintf("which %s goes with the item is not told, of %s", kind, strings.Join(fit, ", "))}
}

// inFileName is a branch or a repository as gh-aw puts it into the name of a file.
func inFileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) {
			return '-'
		}
		return r
	}, name)
	for strings.Contains(name, "--") {
		name = strings.ReplaceAll(name, "--", "-")
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(name, "-"), "-"))
}

// Commits are what a bundle of commits comes to: the change from the commit that they are
// made on, and they themselves as Git has them, the first first.
type Commits struct {
	Raw  []byte // the bundle
	Base string
	Set  patch.Patchset
	List [][]byte
}

// Change is the change that the item asks for, of its patch and its bundle; nil for one
// that is not there. gh-aw itself takes the bundle where both are. Then both must be the
// same change.
func (g GHAW) Change(diff []byte, bundle *Commits, summary string) (in Change, err error) {
	if summary == "" {
		summary = g.summary
	}
	if diff != nil {
		in, err = One(diff, true, summary)
	}
	if bundle != nil && err == nil {
		beside := in.Resolve
		in = bundle.change(summary)
		if beside != nil {
			in.Resolve = both(in.Resolve, beside)
		}
	}
	in.Format, in.Messages = FormatGHAW, itemMessages(g.item, in.Messages)
	return in, err
}

func both(bundle, diff func(fs.FS) (patch.Patchset, error)) func(fs.FS) (patch.Patchset, error) {
	return func(base fs.FS) (patch.Patchset, error) {
		set, err := bundle(base)
		if err != nil {
			return set, err
		}
		other, err := diff(base)
		switch {
		case err != nil:
			return set, fmt.Errorf("the patch beside the bundle: %w", err)
		case other.ID() != set.ID():
			return set, &patch.Error{Message: "the patch beside the bundle is another change than the bundle: nobody can say which one the agent made"}
		}
		return set, nil
	}
}

// change proposes commits as one change. A base whose files are not those that they were
// made on, byte for byte, is refused.
func (c *Commits) change(summary string) Change {
	pieces := make([]Piece, len(c.List))
	for i, raw := range c.List {
		pieces[i] = pieceOf(string(raw))
	}
	if summary == "" && len(pieces) > 0 {
		summary = pieces[0].Subject
	}
	return Change{Kind: KindPatch, Summary: summary, Raw: c.Raw, Author: oneAuthor(pieces), Messages: messages(pieces), Resolve: func(base fs.FS) (patch.Patchset, error) {
		after := map[string]*patch.File{}
		for _, f := range c.Set.Files() {
			there, err := patch.Lookup(base, f.Path)
			if err != nil {
				return patch.Patchset{}, err
			}
			if !there.Equal(f.Before) {
				return patch.Patchset{}, &patch.Error{Path: f.Path, Message: fmt.Sprintf("is another file than in %.12s, which the bundle is made on", c.Base), Try: "the proposer has to make the change anew, on the files as they are"}
			}
			after[f.Path] = f.After
		}
		return patch.NewTree(base).Between(after)
	}}
}

// pieceOf is what a commit as Git has it says of itself (git-hash-object(1), "commit").
func pieceOf(raw string) (p Piece) {
	head, message, _ := strings.Cut(raw, "\n\n")
	p.Message = strings.TrimLeft(message, "\n")
	p.Subject, _, _ = strings.Cut(p.Message, "\n")
	for line := range strings.Lines(head) {
		rest, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "author ")
		if i := strings.LastIndex(rest, "> "); is && i >= 0 {
			seconds, zone, _ := strings.Cut(rest[i+2:], " ")
			n, err := strconv.ParseInt(seconds, 10, 64)
			at, zoneErr := time.Parse("-0700", zone)
			if err == nil && zoneErr == nil {
				p.Author = author(rest[:i+1], time.Unix(n, 0).In(at.Location()).Format(time.RFC3339))
			}
			break
		}
	}
	return p
}
