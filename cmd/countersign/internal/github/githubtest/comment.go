package githubtest

import "time"

// NewComment is a comment in a conversation. App is the login of the app that
// posts it for the account; Email says that it is a reply to a mail. At is now
// if it is zero.
type NewComment struct {
	Repository string
	Number     int
	By, Body   string
	App        string
	Email      bool
	At         time.Time
}

// NewReviewComment is a comment on a line of a file, or on the file if Line is
// 0, or a reply to such a comment.
type NewReviewComment struct {
	Repository string
	Number     int
	By, Body   string
	Path       string
	Line       int
	ReplyTo    int64
	App        string
	Email      bool
	At         time.Time
}

// NewReview is a review. State is APPROVED, CHANGES_REQUESTED, COMMENTED or
// PENDING; Commit is the head if it is "".
type NewReview struct {
	Repository string
	Number     int
	By, Body   string
	State      string
	Commit     string
	App        string
	Email      bool
	At         time.Time
}

// A Comment is a comment or review as it is now. ReplyTo, Path and Resolved are
// those of review comments, State and Commit of reviews.
type Comment struct {
	ID       int64
	Author   string
	Body     string
	URL      string
	Edited   bool
	Path     string
	ReplyTo  int64
	Resolved bool
	State    string
	Commit   string
}

type comment struct {
	text
	pull *pull
	// Of review comments:
	thread   *thread
	review   *review
	replyTo  *comment
	commit   string // the head when it was made
	subject  string // "line" or "file"
	path     string
	line     int
	diffHunk string
}

type review struct {
	text
	pull   *pull
	state  string
	commit string
}

type thread struct {
	id       int64
	pull     *pull
	comments []*comment
	resolved *account
}
