package policy

import "encoding/json"

// CommitRules say what accounts for a commit of a branch beside a transaction, for an
// audit; nothing is approved by them. A rule goes by what a commit is and by trusted data,
// never by what its author may write into it. Decisions are the kinds of decisions that
// account for commits, from the strongest; nil stands for the default (see package explain), and an
// empty list, which only Tighten makes, for none. RefuseEmpty is the file's empty: false.
type CommitRules struct {
	Decisions   []DecisionKind `json:"decisions,omitzero"`
	Merges      Merges         `json:"merges,omitempty"`
	RefuseEmpty Negated        `json:"empty,omitzero"`
	Bots        []VersionBot   `json:"bots,omitempty"`
}

// A DecisionKind says how an approval was given that accounts for a commit.
type DecisionKind string

// The kinds, from the strongest: signed, by an account of the forge, and by neither, in a shell.
const (
	SignedDecision DecisionKind = "signed"
	ForgeDecision  DecisionKind = "forge"
	LocalDecision  DecisionKind = "local"
)

var decisionKinds = []DecisionKind{SignedDecision, ForgeDecision, LocalDecision}

// A Negated key is false in the file where the value is true, and left out where it is false.
type Negated bool

// MarshalJSON writes the file's word.
func (n Negated) MarshalJSON() ([]byte, error) { return json.Marshal(!bool(n)) }

// UnmarshalJSON reads it.
func (n *Negated) UnmarshalJSON(raw []byte) error {
	*n = string(raw) == "false"
	return nil
}

// Merges says which merges are accounted for: none where it is "".
type Merges string

// MergesCovered are merges of commits all of which are accounted for, and whose files are
// exactly what merging them gives.
const MergesCovered Merges = "covered"

// A VersionBot accounts for commits that a key signed which the file Keys lists, in the
// commit that the Policy is read from, and that change nothing but files which one of the
// globs of Paths matches. It never accounts for a protected file, and with Modes alone for a
// changed file mode or a new executable file.
type VersionBot struct {
	Keys  string   `json:"keys"`
	Paths []string `json:"paths"`
	Modes bool     `json:"modes,omitempty"`
}
