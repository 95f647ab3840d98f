package report

import "strings"

// An Obstacle is why an approved change could not be written, told before
// anybody is asked. What and Instead are one line each, in words of ours.
type Obstacle struct {
	Code    string `json:"code"`
	What    string `json:"what"`
	Instead string `json:"instead"`
}

// Facts are what the forge tells of a pull request, and of the token.
type Facts struct {
	TransactionID        string
	Closed, Merged       bool
	HeadDeleted          bool // its repository, or the branch
	HeadProtected        bool
	Fork                 bool
	OrganisationFork     bool // the fork's owner is an organisation
	MaintainersCanModify bool
	TouchesWorkflows     bool // the change, below .github/workflows
	WorkflowsPermission  bool // the push token has
}

// Obstacles lists what stands in the way of the branch, none if nothing does.
// Of a pull request that is over, nothing else is said.
func (f Facts) Obstacles() []Obstacle {
	patch := "take the patch as a file (countersign export " + Clean(f.TransactionID) + " --out DIR)"
	ref := patch + ", or once it is approved as a ref of its own (countersign apply " + Clean(f.TransactionID) + " --to ref)"
	switch {
	case f.Merged:
		return []Obstacle{{"pull_request_merged", "the pull request is merged already", "propose the change on a new pull request, or " + ref}}
	case f.Closed:
		return []Obstacle{{"pull_request_closed", "the pull request is closed", "open it again, or " + ref}}
	case f.HeadDeleted:
		return []Obstacle{{"head_deleted", "the head branch of the pull request is gone", ref}}
	}
	var out []Obstacle
	if f.HeadProtected {
		out = append(out, Obstacle{"head_protected", "the head branch is protected, so a push may be refused", "let the push token past the protection, or " + ref})
	}
	switch {
	case f.Fork && f.OrganisationFork:
		out = append(out, Obstacle{"fork_of_organisation", "the head branch is in a fork that an organisation owns, to which maintainers cannot push", ref})
	case f.Fork && !f.MaintainersCanModify:
		out = append(out, Obstacle{"fork_closed", "the head branch is in a fork, and its owner does not let maintainers push to it", `ask the author to tick "Allow edits by maintainers", or ` + ref})
	}
	if f.TouchesWorkflows && !f.WorkflowsPermission {
		out = append(out, Obstacle{"workflows_permission", "the change touches workflow files, and the push token may not write these", "use an App's token with the permission workflows as push-token, or " + patch})
	}
	return out
}

// obstacleBox tells obstacles loudly.
func obstacleBox(list []Obstacle) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("> [!WARNING]\n> **Even when it is approved, this change cannot go to the branch as things are.**\n")
	for _, o := range list[:min(len(list), 5)] {
		b.WriteString("> - Because " + words(o.What) + ". Instead: " + words(o.Instead) + ".\n")
	}
	return b.String() + "\n"
}
