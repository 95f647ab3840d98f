package pull

import (
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/report"
)

// obstacles lists what stands in the way of writing a change to a pull request's branch, none if
// nothing does. Of a pull request that is over, nothing else is said. workflows says that the change
// is below .github/workflows, and the token must not write there.
func obstacles(id string, on *forge.PullRequest, workflows bool) (out []report.Obstacle) {
	export := "take the patch as a file (countersign export " + report.Clean(id) + " --out DIR)"
	ref := export + ", or, once it is approved, as its own ref (countersign apply " + report.Clean(id) + " --to ref)"
	add := func(is bool, code, what, instead string) {
		if is {
			out = append(out, report.Obstacle{Code: code, What: what, Instead: instead})
		}
	}
	merged := on.State == forge.PullRequestMerged
	closed := !merged && on.State == forge.PullRequestClosed
	add(merged, "pull_request_merged", "the pull request is merged already", "propose the change on a new pull request, or "+ref)
	add(closed, "pull_request_closed", "the pull request is closed", "open it again, or "+ref)
	add(!merged && !closed && on.Head.Repository == nil, "head_deleted", "the head branch of the pull request is gone", ref)
	if len(out) > 0 {
		return out
	}
	ofOrganisation := on.Fork() && on.Head.Owner == "Organization"
	add(on.Head.Protected, "head_protected", "the head branch is protected, so a push may be refused", "let the push token bypass the protection, or "+ref)
	add(ofOrganisation, "fork_of_organisation", "the head branch is in a fork that an organisation owns, to which maintainers cannot push", ref)
	add(on.Fork() && !ofOrganisation && !on.MaintainerCanModify, "fork_closed", "the head branch is in a fork, and its owner does not allow maintainers to push to it", `ask the author to tick "Allow edits by maintainers", or `+ref)
	add(workflows, "workflows_permission", "the change touches workflow files, and the push token must not write them", "use an App's token with the permission workflows as push-token, or "+export)
	return out
}
