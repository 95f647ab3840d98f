package report

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// waits reports whether people on a pull request are asked now.
func (r Report) waits() bool {
	return r.Ended == "" && r.PullRequest > 0 && r.Verdict != nil && r.Verdict.State == approval.Pending
}

// missing lists the fingerprints that still lack an approval, each once.
func (r Report) missing() []approval.Need {
	var out []approval.Need
	for _, n := range r.Verdict.Needs {
		known := func(m approval.Need) bool { return m.Fingerprint == n.Fingerprint }
		if n.Approved < n.Required && !slices.ContainsFunc(out, known) {
			out = append(out, n)
		}
	}
	return out
}

// asks are the lines to copy, one block for each fingerprint, while approvals
// are missing.
func (r Report) asks() string {
	if !r.waits() {
		return ""
	}
	return approveBlocks(r.missing()) + denyBlock(r.Fingerprint) + r.greenHint()
}

// greenHint says where the green button counts.
func (r Report) greenHint() string {
	if !r.GateOnly {
		return ""
	}
	return "A review that approves the pull request as it is now counts as well, for the change itself.\n\n"
}

func approveBlocks(needs []approval.Need) string {
	var b strings.Builder
	for _, n := range needs {
		b.WriteString("To approve " + subject(n.Kind) + ", comment on the pull request with this line:\n\n" + lineBlock("/approve "+n.Fingerprint) + "\n")
	}
	return b.String()
}

func denyBlock(fingerprint string) string {
	return "To deny it for good, with your reason behind it:\n\n" + lineBlock("/deny "+fingerprint) + "\n"
}

// subject is what an approval of a kind is about.
func subject(kind string) string {
	switch kind {
	case policy.KindFileChange:
		return "this change"
	case policy.KindSecret:
		return "that it adds **what looks like a secret**"
	case policy.KindProtected:
		return "that it changes **protected paths**"
	}
	return prose(kind)
}
