package forgetest

import (
	"fmt"
	"maps"
	"net/http"
	"time"
)

// PullRequest opens one, from a branch ("topic", or "user:topic" of a fork), and returns its number.
func (r *Repository) PullRequest(u User, head, base, title string) int64 {
	r.t.Helper()
	var made struct{ Number int64 }
	body := map[string]any{"head": head, "base": base, "title": title}
	for range 20 { // the server learns of a branch that was pushed a moment later
		if status := r.Do(u, http.MethodPost, r.Path("pulls"), body, &made); status != http.StatusNotFound {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if made.Number == 0 {
		r.Must(u, http.MethodPost, r.Path("pulls"), body, &made)
	}
	return made.Number
}

// Arrives waits until the server has taken a push of a commit over into a pull request, which it does some time after
// the push has ended.
func (r *Repository) Arrives(number int64, commit string) {
	r.t.Helper()
	for deadline := time.Now().Add(startTimeout); r.Ref(fmt.Sprintf("refs/pull/%d/head", number)) != commit; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("gitea: pull request %d is not at %s", number, commit)
		}
	}
}

// Comment comments on an issue or a pull request, and returns the comment's id.
func (r *Repository) Comment(u User, number int64, body string) int64 {
	r.t.Helper()
	var made struct{ ID int64 }
	r.Must(u, http.MethodPost, r.Path("issues", number, "comments"), map[string]any{"body": body}, &made)
	return made.ID
}

// EditComment changes the text of a comment, once the second is over that it may have been posted in: an edit in that
// second leaves no trace (docs/forges.md).
func (r *Repository) EditComment(u User, id int64, body string) {
	r.t.Helper()
	nextSecond()
	r.Must(u, http.MethodPatch, r.Path("issues", "comments", id), map[string]any{"body": body}, nil)
}

func nextSecond() {
	for second := time.Now().Unix(); time.Now().Unix() == second; {
		time.Sleep(10 * time.Millisecond)
	}
}

// DeleteComment deletes a comment.
func (r *Repository) DeleteComment(u User, id int64) {
	r.t.Helper()
	r.Must(u, http.MethodDelete, r.Path("issues", "comments", id), nil, nil)
}

// Review reviews a pull request: event is "APPROVED", "REQUEST_CHANGES" or "COMMENT", commit the one that is
// reviewed, or "" for the head as it is. It returns the review's id. It waits till the second is over in which the
// pull request may have been proposed: a green review of that second does not count, as servers tell no more than seconds.
func (r *Repository) Review(u User, number int64, event, body, commit string) int64 {
	r.t.Helper()
	nextSecond()
	var made struct{ ID int64 }
	r.Must(u, http.MethodPost, r.Path("pulls", number, "reviews"), map[string]any{"event": event, "body": body, "commit_id": commit}, &made)
	return made.ID
}

// Close closes an issue or a pull request.
func (r *Repository) Close(u User, number int64) {
	r.t.Helper()
	r.Must(u, http.MethodPatch, r.Path("issues", number), map[string]any{"state": "closed"}, nil)
}

// Collaborator gives a user a permission: "read", "write" or "admin".
func (r *Repository) Collaborator(u User, permission string) {
	r.t.Helper()
	r.Must(r.Admin, http.MethodPut, r.Path("collaborators", u.Name), map[string]any{"permission": permission}, nil)
}

// RemoveCollaborator takes all that back.
func (r *Repository) RemoveCollaborator(u User) {
	r.t.Helper()
	r.Must(r.Admin, http.MethodDelete, r.Path("collaborators", u.Name), nil, nil)
}

// Protect protects branches that match a rule, as "main" or "release/*", with the fields of Gitea's
// CreateBranchProtectionOption.
func (r *Repository) Protect(rule string, fields map[string]any) {
	r.t.Helper()
	body := map[string]any{"rule_name": rule}
	maps.Copy(body, fields)
	r.Must(r.Admin, http.MethodPost, r.Path("branch_protections"), body, nil)
}

// Edit changes the repository's settings, the fields of Gitea's EditRepoOption: "archived", "private", "name".
func (r *Repository) Edit(fields map[string]any) {
	r.t.Helper()
	r.Must(r.Admin, http.MethodPatch, r.Path(), fields, nil)
	if name, renamed := fields["name"].(string); renamed {
		r.Name = name
	}
}
