// Package policy reads .github/countersign.yml, in which a repository's owner
// says what agents may do, and works out which approvals a patch needs.
//
// The file is YAML of the plainest kind. Each key may be left out:
//
//	version: 1
//	approvals:
//	  required: 1            # humans who must approve each change
//	  permission: write      # the least that an approver has: read, triage, write, maintain, admin
//	  allow_author: false    # whether the proposer may approve (never a secret)
//	  independent: [proposer, requester] # who alone is not enough: who proposed it, who asked for it
//	  same_head: false       # whether an approval holds only for the commit it was made on
//	  max_age: 14d           # how long an approval holds; left out: for ever
//	  due: 2d                # how long people have to decide; left out: for ever
//	  drift: {commits: 20, same_directory: ask} # how far the base may move meanwhile; left out: however far
//	  local: false           # left out: local decisions count where there is no pull request
//	  break_glass: [ada]
//	  keys: .github/allowed_signers  # whose signatures count, in OpenSSH's format
//	  signed: accept         # off, accept, require; left out: accept where keys is given
//	  forge_keys: false      # whether the signing keys of an account at the forge count as well
//	  hardware: false        # whether only security keys that were touched count
//	  pin: false             # whether these must have verified the person as well
//	  passkeys: https://acme.github.io # origin of the site that asks for passkeys of keys; left out: none count
//	bots: [12345, renovate]  # accounts that are never human, by number or login
//	protected:
//	  - paths: ["/deploy/", "*.tf"]
//	    required: 2
//	    teams: [acme/security]
//	    signed: require        # whatever approvals.signed says
//	  - advice: {tool: semgrep, level: error} # in the place of paths: what a tool is recorded to have claimed
//	    required: 2
//	sandbox: workspace-write # or read-only, danger-full-access
//	secrets: require-approval
//	limits: {files: 500, bytes: 5 MiB, open: 20} # open: changes of one proposer at once; left out: any number
//	commands:
//	  run: ["go vet ./..."]
//	  allow:
//	    - {argv: [go, test, ./...], timeout: 10m, network: false, env: [GOCACHE]}
//	apply: {to: branch, sign: COUNTERSIGN_SIGN_KEY} # or {to: pull_request, merge: human}
//	gate: {bases: [main], allow_force: false, allow_delete: false, allow_tags: false}
//	explained:               # beside transactions, what accounts for a commit of a branch
//	  decisions: [signed, forge] # by which approvals; left out: local ones too, but where pull requests are gated or signatures required
//	  merges: covered        # a merge of such commits, if it is exactly what merging gives
//	  empty: true            # whether a commit that changes no file accounts for itself
//	  bots:
//	    - {keys: .github/bot_keys, paths: [/go.mod, /go.sum], modes: false} # modes: whether it may make files executable
//	exceptions: {review: 5d} # how long somebody independent has to review an exception; left out: for ever
//	tickets: ["[A-Z]+-[0-9]+", "#\\d+"] # how tickets are written, which evidence looks for
//	ledger: {repository: acme/ledgers, tip: 3f786850e387550fdab836ed7e6dc881de23001b, since: 2026-01-05T12:00:00Z}
//	witnesses: {file: .github/witnesses, required: 2} # who must see the ledger's tips
//
// Reading is strict: a key or word that is not known, a key twice, anchors,
// aliases, tags, a second document, a character that does not show, and any
// value of another type are Problems with file, line and column. A file that is
// wrong in one place is wrong as a whole; it never reads as the default.
//
// The package is pure: where the file comes from, and when, is for the caller.
package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// Path is where the Policy is in a tree.
const Path = ".github/countersign.yml"

// A Policy is what a repository's owner demands. The zero value demands nothing
// and is never used; Default is what holds without a file.
type Policy struct {
	Version    int         `json:"version"`
	Approvals  Approvals   `json:"approvals"`
	Bots       []string    `json:"bots,omitempty"`      // accounts that are never human
	Protected  []Rule      `json:"protected,omitempty"` // beside BuiltIns
	Sandbox    Sandbox     `json:"sandbox"`
	Secrets    Secrets     `json:"secrets"`
	Limits     Limits      `json:"limits"`
	Commands   Commands    `json:"commands"`
	Apply      Apply       `json:"apply"`
	Gate       Gate        `json:"gate"`
	Explained  CommitRules `json:"explained,omitzero"`
	Exceptions Exceptions  `json:"exceptions,omitzero"`
	Tickets    []string    `json:"tickets,omitempty"` // patterns of RE2, in the plain part of its syntax (ticketForm)
	Ledger     Ledger      `json:"ledger,omitzero"`
	Witnesses  Witnesses   `json:"witnesses,omitzero"`
}

// Approvals says whose agreement is needed, and how long it holds. MaxAge 0 is
// for ever. Due is how long a change may wait before it is called overdue, 0 for ever; it decides
// nothing. BreakGlass are those who may do without the others' agreement.
//
// Keys is the path of the file, in the commit that the Policy is read from, that
// says whose signatures count; "" for none. Signed says what they are asked for,
// in the file's word; Signing is what that comes to. ForgeKeys takes the signing keys
// that the forge has for an account beside those of Keys. Hardware takes only security
// keys that were touched, PIN those that verified the person as well. Passkeys is the origin of the
// pages that may ask a passkey, "" takes none.
//
// Of the approvals of each need at least one must be by somebody who had no Part of
// Independent in the change.
type Approvals struct {
	Required    int        `json:"required"`
	Permission  Permission `json:"permission"`
	AllowAuthor bool       `json:"allow_author"`
	Independent []Part     `json:"independent,omitempty"`
	SameHead    bool       `json:"same_head"`
	MaxAge      Duration   `json:"max_age,omitzero"`
	Due         Duration   `json:"due,omitzero"`
	Drift       *Drift     `json:"drift,omitempty"`
	Local       Local      `json:"local,omitzero"`
	BreakGlass  []string   `json:"break_glass,omitempty"`
	Keys        string     `json:"keys,omitempty"`
	Signed      Signing    `json:"signed,omitempty"`
	ForgeKeys   bool       `json:"forge_keys,omitempty"`
	Hardware    bool       `json:"hardware,omitempty"`
	PIN         bool       `json:"pin,omitempty"`
	Passkeys    string     `json:"passkeys,omitempty"`
}

// A Rule protects the files that one of Paths matches (see Glob): Required
// people must approve that they change. One with Advice, which has no Paths, protects
// all files of a patch that a tool is recorded to have objected to. If it names any, these are Users,
// members of Teams or, with Owners, the file's code owners. Signed is "" or
// SignedOnly: then only signed approvals count.
type Rule struct {
	Paths    []string    `json:"paths,omitempty"`
	Advice   *AdviceRule `json:"advice,omitempty"`
	Required int         `json:"required"`
	Users    []string    `json:"users,omitempty"`
	Teams    []string    `json:"teams,omitempty"`
	Owners   bool        `json:"owners,omitempty"`
	Signed   Signing     `json:"signed,omitempty"`
}

// An AdviceRule is met by a finding of a Tool, of its Level or above.
type AdviceRule struct {
	Tool  string `json:"tool"`
	Level Level  `json:"level"`
}

// Secrets says what happens to a patch that adds what looks like a secret.
// SealTo are age recipients that may read the raw patch. Signed is as in a Rule.
type Secrets struct {
	Mode   SecretsMode `json:"mode"`
	SealTo []string    `json:"seal_to,omitempty"`
	Signed Signing     `json:"signed,omitempty"`
}

// Limits bound what may be proposed: changed files, bytes of input, and how many changes of one
// proposer may be open at once, 0 for any number.
type Limits struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	Open  int   `json:"open,omitempty"`
}

// Commands are those that run before a branch moves, and those that a Proposal
// may ask for.
type Commands struct {
	Run   []Check   `json:"run,omitempty"`
	Allow []Command `json:"allow,omitempty"`
}

// Apply says where a change goes, the environment variable that holds the
// SSH key which signs it ("" for none), and who merges what goes to a pull request
// of its own ("" for MergeHuman).
type Apply struct {
	To    Target `json:"to,omitempty"`
	Merge Merge  `json:"merge,omitempty"`
	Sign  string `json:"sign,omitempty"`
}

// Gate names the branches whose pull requests the check "countersign" guards, and that a
// server's guard does; none stands for the default branch. The others say what that one lets
// through: a guarded branch that loses commits, one that is deleted, and tags of what no guarded branch has.
type Gate struct {
	Bases       []string `json:"bases,omitempty"`
	AllowForce  bool     `json:"allow_force,omitempty"`
	AllowDelete bool     `json:"allow_delete,omitempty"`
	AllowTags   bool     `json:"allow_tags,omitempty"`
}

// Exceptions says how long somebody independent has to review what evidence takes for an
// exception. Review 0 is for ever.
type Exceptions struct {
	Review Duration `json:"review,omitzero"`
}

// Ledger says where the ledger is that is shared, and which one a job of a workflow
// takes for the right one. Repository is the OWNER/NAME of another repository on the
// same server that keeps it. It must be at Tip, a commit, or descend from it; and what check runs said of an
// earlier one before Since, a time of RFC 3339 in UTC, is passed over. Each may be "".
type Ledger struct {
	Repository string `json:"repository,omitempty"`
	Tip        string `json:"tip,omitempty"`
	Since      string `json:"since,omitempty"`
}

// Witnesses says who is shown the tips of the ledger after a settle. File is the path of
// the file, in the commit that the Policy is read from, that names them (package witness); "" for
// nobody. Required is how many of them must sign, 0 if it is no failure that none does.
type Witnesses struct {
	File     string `json:"file"`
	Required int    `json:"required,omitempty"`
}

// Default is the Policy of a repository that has no file: one human with write
// permission, who may decide locally where there is no pull request; 500 files;
// 5 MiB.
func Default() Policy {
	return Policy{
		Version:   1,
		Approvals: Approvals{Required: 1, Permission: CanWrite},
		Sandbox:   WorkspaceWrite,
		Secrets:   Secrets{Mode: RequireApproval},
		Limits:    Limits{Files: 500, Bytes: 5 << 20},
	}
}

// JSON is the Policy in canonical JSON and an LF, with what the file leaves out
// filled in. Decode reads it; unless it is too long, or no decision accounts for a
// commit, it is itself a Policy file that says the same.
func (p Policy) JSON() []byte {
	line, err := canon.Line(p)
	if err != nil {
		panic("policy: encoding a Policy: " + err.Error())
	}
	return line
}

// Sum is the "sha256:…" of JSON. Two files that say the same have one Sum.
func (p Policy) Sum() string { return canon.Sum(p.JSON()) }

// A Part is what somebody had to do with a change who may not be the only one to approve it.
type Part string

// The parts: having proposed it or written it, and having asked for it, as far as that is known.
const (
	Proposing  Part = "proposer"
	Requesting Part = "requester"
)

var parts = []Part{Proposing, Requesting}

// A Permission is what somebody may do in a repository of the forge.
type Permission string

// The permissions, from the least to the most.
const (
	CanRead     Permission = "read"
	CanTriage   Permission = "triage"
	CanWrite    Permission = "write"
	CanMaintain Permission = "maintain"
	CanAdmin    Permission = "admin"
)

var permissions = []Permission{CanRead, CanTriage, CanWrite, CanMaintain, CanAdmin}

// AtLeast reports whether p includes least. A word that is no Permission is
// included in nothing and includes nothing.
func (p Permission) AtLeast(least Permission) bool {
	have, want := slices.Index(permissions, p), slices.Index(permissions, least)
	return want >= 0 && have >= want
}

// A Level is how grave a tool finds what it found.
type Level string

// Levels are all of them, from the least.
var Levels = []Level{"note", "warning", "error"}

// Rank is the place of a level, -1 of what is none.
func (l Level) Rank() int { return slices.Index(Levels, l) }

// A Sandbox is what effects may reach. FullAccess needs a flag of the command
// line as well.
type Sandbox string

// The sandboxes, from the strictest.
const (
	ReadOnly       Sandbox = "read-only"
	WorkspaceWrite Sandbox = "workspace-write"
	FullAccess     Sandbox = "danger-full-access"
)

var sandboxes = []Sandbox{ReadOnly, WorkspaceWrite, FullAccess}

// A SecretsMode is what happens to a patch that adds what looks like a secret.
type SecretsMode string

// The modes, from the strictest.
const (
	Refuse          SecretsMode = "refuse"
	RequireApproval SecretsMode = "require-approval"
)

var secretsModes = []SecretsMode{Refuse, RequireApproval}

// A Target is where a change goes. "" leaves it to the command: the branch of
// the pull request, else the working tree.
type Target string

// The targets.
const (
	ToWorktree Target = "worktree"
	ToBranch   Target = "branch"
	ToRef      Target = "ref"
	// ToPullRequest makes a pull request of a change that is for none; one that is
	// for a pull request goes to that one's branch.
	ToPullRequest Target = "pull_request"
)

var targets = []Target{ToWorktree, ToBranch, ToRef, ToPullRequest}

// A Merge is who merges a pull request that was made of a change, once it is
// approved.
type Merge string

// The words of Merge, from the strictest. MergeAuto has this program merge it.
const (
	MergeHuman Merge = "human"
	MergeAuto  Merge = "auto"
)

var merges = []Merge{MergeHuman, MergeAuto}

// Local says where decisions count that are taken with the command line or over
// RPC. The zero value is LocalAlone.
type Local int

// LocalNever and LocalAlways are the file's false and true; LocalAlone, only
// where there is no pull request, is what holds when it says neither.
const (
	LocalNever  Local = -1
	LocalAlone  Local = 0
	LocalAlways Local = 1
)

// Counts reports whether local decisions count for a transaction that is, or is
// not, bound to a pull request.
func (l Local) Counts(pullRequest bool) bool {
	return l == LocalAlways || l == LocalAlone && !pullRequest
}

// MarshalJSON writes true or false; LocalAlone has no word and is left out.
func (l Local) MarshalJSON() ([]byte, error) {
	if l == LocalAlone {
		return nil, fmt.Errorf("the default of local has no word")
	}
	return json.Marshal(l == LocalAlways)
}

// UnmarshalJSON reads true or false.
func (l *Local) UnmarshalJSON(raw []byte) error {
	*l = LocalNever
	if string(raw) == "true" {
		*l = LocalAlways
	}
	return nil
}

// A Signing is what signed decisions are worth.
type Signing string

// The words, from the laxest. SignedOff takes no signature, SignedToo counts signed
// approvals and others, SignedOnly nothing that is not signed. What is left out is
// SignedToo where there are keys, else SignedOff.
const (
	SignedOff  Signing = "off"
	SignedToo  Signing = "accept"
	SignedOnly Signing = "require"
)

var signings = []Signing{SignedOff, SignedToo, SignedOnly}

// Signing is what signed decisions are worth under the file's approvals.
func (a Approvals) Signing() Signing {
	switch {
	case a.Signed != "":
		return a.Signed
	case a.Keys != "" || a.ForgeKeys:
		return SignedToo
	}
	return SignedOff
}

// A Duration is a whole number of seconds, written as such: "600s".
type Duration time.Duration

// UnmarshalText reads what MarshalText writes.
func (d *Duration) UnmarshalText(text []byte) error {
	seconds, err := strconv.ParseInt(strings.TrimSuffix(string(text), "s"), 10, 64)
	*d = Duration(seconds) * Duration(time.Second)
	return err
}

// MarshalText writes d in seconds, which the file takes too.
func (d Duration) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%ds", int64(d)/int64(time.Second)), nil
}

// String is d as the file writes it.
func (d Duration) String() string {
	text, _ := d.MarshalText()
	return string(text)
}

// A Drift bounds how far what a change goes onto may move before an approval counts
// no more: by more than Commits, nil for any number, or, where SameDirectory is Ask,
// by any other file in a directory of a touched one. A nil *Drift sets no bound.
type Drift struct {
	Commits       *int          `json:"commits,omitempty"`
	SameDirectory SameDirectory `json:"same_directory,omitempty"`
}

// A SameDirectory is what follows when a file beside a touched one changes: Ask, or
// "" for nothing.
type SameDirectory string

// Ask is to approve again.
const Ask SameDirectory = "ask"

// mostDrift is more commits than anybody would want to allow.
const mostDrift = 100_000

// A Command is one that may be run: exactly this Argv. With Shell it is one
// string, which a shell reads. Env names the variables that it sees beside the
// sandbox's own.
type Command struct {
	Argv    []string `json:"argv"`
	Shell   bool     `json:"shell,omitempty"`
	Timeout Duration `json:"timeout"`
	Network bool     `json:"network"`
	Env     []string `json:"env,omitempty"`
}

// A Check is a Command that always runs before a branch moves. Where it is
// Required, its failure stops the change.
type Check struct {
	Command
	Required bool `json:"required"`
}

// Same reports whether argv is this command: every argument, byte for byte.
func (c Command) Same(argv []string) bool { return slices.Equal(c.Argv, argv) }

// Text is the command as a Proposal would write it.
func (c Command) Text() string { return strings.Join(c.Argv, " ") }

// DefaultTimeout is how long a command may run where its entry does not say.
const DefaultTimeout = Duration(10 * time.Minute)

// IsAccount reports whether an entry of the file names an account. Digits are a
// numeric id and never a login, so that nobody registers a login which is
// another's id; what has a colon, as local:ada@example.org, is an id too.
// Anything else is a login, in which case does not count. A login can be given
// up and taken by somebody else (T11): where that matters the file has the id.
func IsAccount(entry, id, login string) bool {
	if entry == "" {
		return false
	}
	if strings.Trim(entry, "0123456789") == "" || strings.Contains(entry, ":") {
		return entry == id
	}
	return strings.EqualFold(entry, login)
}

// IsBot reports whether the file lists an account under bots.
func (p Policy) IsBot(id, login string) bool { return listed(p.Bots, id, login) }

// Lists reports whether a need's Users have an account.
func (n Need) Lists(id, login string) bool { return listed(n.Users, id, login) }

func listed(entries []string, id, login string) bool {
	return slices.ContainsFunc(entries, func(e string) bool { return IsAccount(e, id, login) })
}
