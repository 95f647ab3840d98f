package forge

// Posted is a comment that this program made. BodySHA256 is of the body as the
// forge returned it; a thread whose first comment has another body, or was
// edited, binds nobody.
type Posted struct {
	Kind       string `json:"kind"` // KindReviewComment, or KindIssueComment for the one that is updated
	ID         string `json:"id"`
	URL        string `json:"url"`
	BodySHA256 string `json:"body_sha256"`
}
