package github

import "github.com/countersign-dev/countersign/pipeline/approval"

// statePending is of a review that its author has not submitted yet.
const statePending = "PENDING"

// said is a review or a comment. State and what follows are of some kinds only.
type said struct {
	ID                  string                  `json:"id"`
	FullDatabaseID      number                  `json:"fullDatabaseId"`
	URL                 string                  `json:"url"`
	Body                string                  `json:"body"`
	Author              *account                `json:"author"`
	CreatedAt           string                  `json:"createdAt"`
	LastEditedAt        *string                 `json:"lastEditedAt"`
	IncludesCreatedEdit *bool                   `json:"includesCreatedEdit"`
	Editor              *struct{ Login string } `json:"editor"`
	CreatedViaEmail     *bool                   `json:"createdViaEmail"`
	IsMinimized         *bool                   `json:"isMinimized"`
	State               string                  `json:"state"`
	SubmittedAt         string                  `json:"submittedAt"`
	Commit              *object                 `json:"commit"`
	OriginalCommit      *object                 `json:"originalCommit"`
	Review              *struct{ State string } `json:"pullRequestReview"`

	kind, replyTo string
}

func ofKind(all []said, kind string) []said {
	for i := range all {
		all[i].kind = kind
	}
	return all
}

// pending reports whether the author, who is then the token's, has not submitted
// it.
func (s said) pending() bool {
	return s.State == statePending || s.Review != nil && s.Review.State == statePending
}

// untold reports whether the answer leaves open if a text was edited, came by
// e-mail, or is hidden: it is not taken for one that was not (T82). Reviews can be
// hidden only on servers that tell it.
func (s said) untold() bool {
	return s.IncludesCreatedEdit == nil || s.CreatedViaEmail == nil || s.IsMinimized == nil && s.kind != approval.KindReview
}

// edited is true as soon as anything says so.
func (s said) edited() bool {
	return s.LastEditedAt != nil || told(s.IncludesCreatedEdit) || s.Editor != nil
}

func told(yes *bool) bool { return yes != nil && *yes }

func (s said) statement(earlier []string) approval.Statement {
	out := approval.Statement{
		Kind: s.kind, ID: string(s.FullDatabaseID), URL: s.URL, Author: s.Author.actor(), Body: s.Body,
		Earlier: earlier, Edited: s.edited(), Email: told(s.CreatedViaEmail), Hidden: told(s.IsMinimized), ReplyTo: s.replyTo, CreatedAt: s.CreatedAt,
	}
	commit := s.OriginalCommit
	if s.kind == approval.KindReview {
		out.State, commit = s.State, s.Commit
		out.CreatedAt = firstOf(s.SubmittedAt, s.CreatedAt)
	}
	if commit != nil {
		out.Commit = commit.Oid
	}
	return out
}
