package html

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report/view"
)

// samePatch leads to the others who proposed these bytes, nil where there are none.
func (s *sheet) samePatch() *Body {
	address := "patch/" + s.T.PatchID + "/index.html"
	if !isLongHex(s.T.PatchID) || s.O.Alone || s.O.Has == nil || !s.O.Has(address) {
		return nil
	}
	return s.here(address, "others proposed these bytes too")
}

// claims are what a commit of the change says in its proposer's words.
func (s *sheet) claims() string {
	if s.T.Proposal == nil {
		return ""
	}
	return strings.Join(view.Claims(s.T.Proposal.Message, s.T.Proposal.Declared), "\n")
}

// transaction leads to one by its id.
func (s *sheet) transaction(id string) *Body {
	address := ""
	if ledger.CheckID(id) == nil {
		address = "tx/" + id + ".html"
	}
	return s.here(address, id)
}

func (s *sheet) pull() *Body {
	text := "#" + strconv.Itoa(s.T.PullRequest)
	if r := s.T.Repository; r != nil {
		text = r.Name + text
	}
	return To(s.pullPage(), text)
}

// pullPage is the address of the pull request's page, "" for none. Where it is not known what kind of forge
// that is, the address of a decision there tells it.
func (s *sheet) pullPage() string {
	to := s.O.Links
	for _, d := range all[*ledger.ApprovalDecision](s.T) {
		at, on := strings.CutPrefix(d.Source.URL, to.Web+"/")
		if to.Pull(s.T.PullRequest) != "" || !on {
			continue
		}
		to.GitHub = strings.HasPrefix(at, fmt.Sprintf("pull/%d#", s.T.PullRequest))
		to.Gitea = strings.HasPrefix(at, fmt.Sprintf("pulls/%d#", s.T.PullRequest))
	}
	return to.Pull(s.T.PullRequest)
}

// riskDetail is more about a risk. That of some risks of lines has words of them, and a tool may quote any.
func (s *sheet) riskDetail(r risk.Risk) string {
	if s.O.Redact && (len(r.Lines) > 0 && (r.Kind == risk.Lookalike || r.Kind == risk.Hidden) || r.Kind == risk.Claimed) {
		r.Detail = "left out of these pages"
	}
	return r.Detail
}

// section is the number of the diff of a file, 0 where there is none to see.
func (s *sheet) section(path string) int {
	if s.O.Redact {
		return 0
	}
	return 1 + slices.IndexFunc(s.T.View.Files, func(f view.File) bool { return f.Path == path })
}

// total are the changed lines of all files.
func (s *sheet) total() (sum view.File) {
	for _, f := range s.Files {
		sum.Added, sum.Deleted = sum.Added+f.Added, sum.Deleted+f.Deleted
	}
	return sum
}

// history leads to the page of a path, nil where there is none.
func (s *sheet) history(path string) *Body {
	if s.O.Path == nil || s.O.Alone || !s.has(s.O.Path(path)) {
		return nil
	}
	return s.here(s.O.Path(path), "history")
}

// unwritten are the operations that did not write a file.
func (s *sheet) unwritten(path string) (out []ledger.Operation) {
	if s.T.Result == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.T.Result.Operations), func(o ledger.Operation) bool { return o.Path != path || o.Status == ledger.StatusSuccess })
}

// protected are the paths that met rules of the Policy, with these.
func (s *sheet) protected() []risk.Explained {
	if s.T.Proposal == nil {
		return nil
	}
	return risk.Explain(s.T.policy, s.T.Proposal.TargetFiles)
}

// A policyPart is a line of the Policy that applied, or the lines between two of them: parts that stand beside each other without
// markup between take a page the square of their number.
type policyPart struct {
	Text    string
	Applied bool
}

func (s *sheet) policyParts() (out []policyPart) {
	applied := map[string]bool{
		"approvals": true, "commands": len(s.commands()) > 0, "apply": s.T.Result != nil, "secrets": s.T.Proposal != nil && s.T.Proposal.ContainsSecrets,
	}
	for _, p := range s.protected() {
		for _, met := range p.Rules {
			applied[met.Rule] = true
		}
	}
	key, rule := "", -1
	from, to := 0, 0 // of the lines that did not apply
	for line := range strings.Lines(s.T.written) {
		switch {
		case strings.HasPrefix(line, "- "):
			rule++
		case !strings.HasPrefix(line, " "):
			key, _, _ = strings.Cut(line, ":")
			rule = -1
		}
		end := to + len(line)
		if applied[key] || key == "protected" && applied[fmt.Sprintf("protected[%d]", rule)] {
			out = append(out, policyPart{s.T.written[from:to], false}, policyPart{line, true})
			from = end
		}
		to = end
	}
	out = append(out, policyPart{s.T.written[from:to], false})
	return out
}
