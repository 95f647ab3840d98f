package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

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
)

var targets = []Target{ToWorktree, ToBranch, ToRef}

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

// A Duration is a whole number of seconds, written as such: "600s".
type Duration time.Duration

// MarshalText writes d in seconds, which the file takes too.
func (d Duration) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%ds", int64(d)/int64(time.Second)), nil
}

// String is d as the file writes it.
func (d Duration) String() string {
	text, _ := d.MarshalText()
	return string(text)
}
