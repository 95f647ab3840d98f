package serve

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/report"
)

// A thread is the directories that a client works in: roots, to which its
// proposals keep, and cwd, where its relative paths begin; all from the top of
// the repository, with slashes. It is nothing else, so that its id says it all
// and nothing has to be kept.
//
//	thread?cwd=.&root=.
type thread struct {
	roots []string // sorted, each once
	cwd   string
}

const threadPrefix = "thread?"

func (t thread) id() string {
	return threadPrefix + url.Values{"cwd": {t.cwd}, "root": t.roots}.Encode()
}

// everything is the thread of the whole repository.
var everything = thread{[]string{"."}, "."}

type threadParams struct {
	WorkspaceRoots []string `json:"workspaceRoots"`
	CWD            string   `json:"cwd,omitempty"`
}

func (c *call) threadStart(_ context.Context, p threadParams) (any, error) {
	t, err := c.newThread(p.WorkspaceRoots, p.CWD)
	if err != nil {
		return nil, err
	}
	c.told.opened(t)
	return c.showThread(t), nil
}

func (c *call) threadList(context.Context, struct{}) (any, error) {
	out := []any{}
	for _, t := range c.told.threads() {
		out = append(out, c.showThread(t))
	}
	return map[string]any{"threads": out}, nil
}

func (c *call) showThread(t thread) any {
	return map[string]any{"threadId": t.id(), "workspaceRoots": c.at(t.roots...), "cwd": c.at(t.cwd)[0]}
}

// newThread checks the paths of a client: each must be absolute, and a
// directory of this repository, whatever links lead there.
func (s *service) newThread(roots []string, cwd string) (thread, error) {
	if len(roots) == 0 {
		return thread{}, refused("no workspace root was given")
	}
	var t thread
	for _, root := range roots {
		inside, err := s.inside(root)
		if err != nil {
			return thread{}, err
		}
		t.roots = append(t.roots, inside)
	}
	var err error
	if t.cwd, err = s.inside(cmp.Or(cwd, roots[0])); err != nil {
		return thread{}, err
	}
	if !within(t.cwd, t.roots) {
		return thread{}, refused("%s is in none of the workspace roots", report.Clean(cwd))
	}
	slices.Sort(t.roots)
	t.roots = slices.Compact(t.roots)
	return t, nil
}

// inside is a directory of the repository as a path from its top.
func (s *service) inside(dir string) (string, error) {
	refuse := func(why string) (string, error) {
		return "", refused("%s %s", report.Clean(dir), why)
	}
	if !filepath.IsAbs(dir) {
		return refuse("is not an absolute path")
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return refuse("is no directory that can be read")
	}
	rel, err := filepath.Rel(s.root, real)
	if err != nil || !filepath.IsLocal(rel) {
		return refuse("is not in the repository " + s.root)
	}
	rel = filepath.ToSlash(rel)
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return refuse("is no directory that can be read")
	}
	if rel != "." && patch.CheckPath(rel) != nil {
		return refuse("is no place for files that can be proposed")
	}
	return rel, nil
}

// thread reads a thread's id, and checks anew what it says.
func (s *service) thread(id string) (thread, error) {
	query, ok := strings.CutPrefix(id, threadPrefix)
	said, err := url.ParseQuery(query)
	if !ok || err != nil {
		return thread{}, refused("threadId is not one that thread/start gave")
	}
	t, err := s.newThread(s.at(said["root"]...), s.at(said.Get("cwd"))[0])
	if err == nil && t.id() != id {
		err = refused("threadId is not one that thread/start gave")
	}
	return t, err
}

// within reports whether a path is one of these directories, or below one.
func within(name string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
	})
}

// keepTo refuses a change that touches files outside of these directories.
func keepTo(in input.Change, dirs []string) input.Change {
	resolve := in.Resolve
	in.Resolve = func(base fs.FS) (patch.Patchset, error) {
		set, err := resolve(base)
		if err != nil {
			return set, err
		}
		for _, f := range set.Files() {
			if !within(f.Path, dirs) {
				return patch.Patchset{}, &patch.Error{Path: f.Path, Message: "is outside of where this turn may write"}
			}
		}
		return set, nil
	}
	return in
}

// files are a client's paths, which begin in cwd, from the top of the
// repository. Those that do not are refused further on.
func (t thread) files(names []string) []string {
	var out []string
	for _, name := range names {
		if !path.IsAbs(name) {
			name = path.Join(t.cwd, name)
		}
		out = append(out, name)
	}
	return out
}

type turnParams struct {
	ThreadID       string         `json:"threadId"`
	Input          any            `json:"input"` // a text, or a list of items of text
	Description    string         `json:"description,omitempty"`
	CWD            string         `json:"cwd,omitempty"`
	WorkspaceRoot  string         `json:"workspaceRoot,omitempty"`
	Needle         string         `json:"needle,omitempty"`
	TargetFiles    []string       `json:"targetFiles,omitempty"`
	Patch          string         `json:"patch,omitempty"`
	SandboxPolicy  *sandboxParams `json:"sandboxPolicy,omitempty"`
	ApprovalPolicy any            `json:"approvalPolicy,omitempty"` // an object, or a word
	Trace          string         `json:"trace,omitempty"`
	RequestedBy    []string       `json:"requestedBy,omitempty"` // the names of who asked for it
}

// Key keeps the turns of a thread in order.
func (p turnParams) Key() string { return p.ThreadID }

// summary is what the change is for: the description, and the text of the input.
func (p turnParams) summary() (string, error) {
	var parts []string
	if p.Description != "" {
		parts = append(parts, p.Description)
	}
	items, isList := p.Input.([]any)
	if !isList {
		items = []any{p.Input}
	}
	for _, one := range items {
		text, ok := one.(string)
		if item, _ := one.(map[string]any); isList && len(item) == 2 && (item["type"] == "input_text" || item["type"] == "text") {
			text, ok = item["text"].(string)
		} else if isList {
			ok = false
		}
		if !ok {
			return "", refused(`params.input is a text, or a list of items {"type": "input_text", "text": "…"}`)
		}
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ": "), nil
}

// sandboxParams are a sandboxPolicy; its members have two spellings.
type sandboxParams struct {
	Type           policy.Sandbox `json:"type"`
	WritableRoots  []string       `json:"writable_roots,omitempty"`
	NetworkAccess  bool           `json:"network_access,omitempty"`
	WritableRoots2 []string       `json:"writableRoots,omitempty"`
	NetworkAccess2 bool           `json:"networkAccess,omitempty"`
}

func (c *call) turnStart(ctx context.Context, p turnParams) (any, error) {
	t, err := c.turnThread(p)
	if err != nil {
		return nil, err
	}
	in, err := c.turnInput(ctx, t, p)
	if err != nil {
		return nil, err
	}
	done, err := review.Run(ctx, c.Runner, in, false)
	c.Learn(done.Learnt)
	if err != nil {
		return nil, err
	}
	log, err := lookup.Read(done.Ledger.Tree, done.ID)
	if err != nil {
		return nil, err
	}
	return map[string]any{"turnId": done.ID + turnMark + log.Transaction().Pointers.Proposal.ProposalTurnID, "transactionId": done.ID}, nil
}

// turnThread is the thread of a turn, with the narrower directories that the turn
// names.
func (c *call) turnThread(p turnParams) (thread, error) {
	t, err := c.thread(p.ThreadID)
	if err != nil {
		return t, err
	}
	roots := t.roots
	for _, dir := range []string{p.CWD, p.WorkspaceRoot} { // what targetFiles begin in: the last that is given
		if dir == "" {
			continue
		}
		if t.cwd, err = c.inside(dir); err != nil {
			return t, err
		}
		if !within(t.cwd, roots) {
			return t, refused("%s is in none of the thread's workspace roots", report.Clean(dir))
		}
		if dir == p.WorkspaceRoot {
			t.roots = []string{t.cwd}
		}
	}
	return t, nil
}

// turnInput is what a turn proposes, in the bounds that it was given.
func (c *call) turnInput(ctx context.Context, t thread, p turnParams) (in input.Change, err error) {
	rules, err := c.Runner.Rules(ctx, "")
	if err != nil {
		return in, err
	}
	if err := checkApprovals(p.ApprovalPolicy, rules.Policy); err != nil {
		return in, err
	}
	summary, err := p.summary()
	if err != nil {
		return in, err
	}
	switch {
	case (p.Needle == "") == (p.Patch == ""):
		return in, refused("a turn proposes either what params.needle or what params.patch says")
	case p.Patch != "" && p.TargetFiles != nil:
		return in, refused("params.targetFiles belong to params.needle")
	case p.Patch != "":
		in, err = input.Diff([]byte(p.Patch), summary)
	default:
		in, err = input.Recipe(p.Needle, t.files(p.TargetFiles), summary)
	}
	if err != nil {
		return in, err
	}
	in.Via = input.ViaRPC
	if in.RequestedBy, err = input.NamedAll(p.RequestedBy, ledger.AskedByRPC); err != nil {
		return in, refused("params.requestedBy %v", err)
	}
	if have := int64(len(p.Trace)); have > rules.Policy.Limits.Bytes {
		return in, fmt.Errorf("params.trace: %w", &pipeline.LimitError{What: "bytes", Have: have, Max: rules.Policy.Limits.Bytes})
	}
	if p.Trace != "" {
		if in.Trace, in.TraceFormat, err = input.ReadTrace([]byte(p.Trace), c.Runner.Secrets.Text); err != nil {
			return in, fmt.Errorf("params.trace: %w", err)
		}
	}
	return c.inSandbox(keepTo(in, t.roots), p.SandboxPolicy)
}

// inSandbox takes over what a turn asks for. It can only ask for less than the
// Policy gives: read-only, which the transaction keeps, and fewer directories.
func (c *call) inSandbox(in input.Change, want *sandboxParams) (input.Change, error) {
	if want == nil {
		return in, nil
	}
	if want.WritableRoots != nil && want.WritableRoots2 != nil {
		return in, refused("params.sandboxPolicy has both writable_roots and writableRoots")
	}
	roots := append(want.WritableRoots, want.WritableRoots2...)
	switch want.Type {
	case policy.ReadOnly, policy.WorkspaceWrite:
		c.Runner.Sandbox = want.Type
	default:
		return in, refused("params.sandboxPolicy.type is %+q: it can be read-only or workspace-write", ledger.OneLine(string(want.Type), 40))
	}
	if want.NetworkAccess || want.NetworkAccess2 {
		return in, refused("params.sandboxPolicy.network_access: commands have the network where the Policy says so, and nowhere else")
	}
	if len(roots) == 0 {
		return in, nil
	}
	var dirs []string
	for _, dir := range roots {
		if !filepath.IsAbs(dir) { // as the ledger has them
			dir = filepath.Join(c.root, dir)
		}
		inside, err := c.inside(dir)
		if err != nil {
			return in, err
		}
		dirs = append(dirs, inside)
	}
	return keepTo(in, dirs), nil
}

// checkApprovals refuses an approvalPolicy that is not the Policy's: whoever asks
// for more would not get it, and nobody gets less. The words on-request and
// untrusted ask for what is always so: people are asked.
func checkApprovals(asked any, p policy.Policy) error {
	if asked == nil || asked == "on-request" || asked == "untrusted" {
		return nil
	}
	required, local := p.Approvals.Required, p.Approvals.Local.Counts(false)
	says := map[string]any{"required": float64(required), "local": local}
	members, ok := asked.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value, known := says[name]
		if !known {
			return refused("params.approvalPolicy has no member %+q", ledger.OneLine(name, 40))
		}
		ok = ok && (members[name] == nil || members[name] == value)
	}
	if !ok {
		return refused("params.approvalPolicy is the Policy's to say, and it says required %d, local %v (or on-request)", required, local)
	}
	return nil
}
