package html

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/view"
)

// exit is what came of a command, in words.
func exit(c ledger.Command) string {
	switch {
	case c.Status == ledger.ItemCompleted && c.ExitCode == 0:
		return "passed"
	case c.ExitCode < 0:
		return "could not be run"
	}
	return fmt.Sprintf("failed with exit code %d", c.ExitCode)
}

// A printed artifact is what a command printed, as far as a page shows it.
type printed struct {
	Execution struct {
		Stdout string `json:"stdout"`
		Stderr string `json:"stderr"`
		Error  string `json:"error"`
	} `json:"execution"`
}

// A checked artifact has what became of the checks of the result.
type checked struct {
	Checks []struct {
		Type     string `json:"type"`
		Target   string `json:"target"`
		Required bool   `json:"required"`
		OK       bool   `json:"ok"`
		Message  string `json:"message"`
	} `json:"checks"`
}

// commands are the checks and commands with what they printed.
func (s *sheet) commands() {
	s.Markup("<section>\n<h2 id=\"commands\">Checks and commands</h2>\n")
	before := s.Len()
	for _, c := range all[*ledger.CommandItem](s.t) {
		s.command(c.Item)
	}
	for _, a := range all[*ledger.ArtifactStored](s.t) {
		doc, ok := aside[checked](s.t, a.Path)
		if a.Kind != "validation" || !ok || len(doc.Checks) == 0 {
			continue
		}
		s.wide("Checks of the result", "Check", "Of", "Required", "Result", "Message")
		for _, c := range doc.Checks {
			s.row(c.Type, Code(c.Target), map[bool]string{true: "yes", false: "no"}[c.Required], map[bool]string{true: "passed", false: "failed"}[c.OK], s.quoting(c.Message))
		}
		s.endWide()
	}
	s.PutIf(s.Len() == before, "<p>None ran.</p>\n")
	s.Markup("</section>\n")
}

// quoting is a text of ours that may end with the last words of a command.
func (s *sheet) quoting(text string) string {
	if s.o.Redact && text != "" {
		return "left out of these pages"
	}
	return text
}

func (s *sheet) command(c ledger.Command) {
	s.Put("<h3>{}: {}</h3>\n<p>{} ms, {}, {}; on the tree {}</p>\n", Code(c.Command), exit(c), c.DurationMS, beside(c.Metadata.When),
		map[bool]string{true: "required", false: "not required"}[c.Metadata.Required], Code(c.Metadata.Tree))
	if s.o.Redact {
		return
	}
	doc, ok := aside[printed](s.t, c.Metadata.Artifact.Path)
	if !ok {
		doc.Execution.Stdout = c.AggregatedOutput
	}
	for _, out := range []struct{ name, text string }{{"It could not be run", doc.Execution.Error}, {"Standard output", doc.Execution.Stdout}, {"Standard error", doc.Execution.Stderr}} {
		if out.text != "" {
			s.Put("<details><summary>{}</summary>\n<pre tabindex=\"0\" role=\"region\" aria-label=\"{} of {}\">", out.name, out.name, c.Command)
			s.Lines(cut(out.text)).Markup("</pre>\n</details>\n")
		}
	}
}

// trace is what the proposer says that it did before.
func (s *sheet) trace() {
	steps := all[*ledger.TraceItem](s.t)
	if len(steps) == 0 {
		return
	}
	s.Markup("<section>\n<h2 id=\"trace\">What the proposer says it did</h2>\n<p>Nothing here saw any of it.</p>\n<ol>\n")
	for _, step := range steps {
		verb := map[string]string{
			"agentMessage": "said", "reasoning": "thought", "plan": "planned", "mcpToolCall": "called a tool", ledger.CommandExecution: "ran",
		}[step.Item.Type]
		if step.Item.Metadata.Source == ledger.SourceClaimed {
			verb = "claimed"
		}
		if how := view.Unfinished(step.Item); how != "" {
			verb += " (" + how + ")"
		}
		s.Put("<li>{}", verb)
		if said := view.StepSaid(step.Item); said != "" && !s.o.Redact {
			s.Put(": {}", Code(said))
		}
		s.Markup("</li>\n")
	}
	s.Markup("</ol>\n</section>\n")
}

// verify has the commands by which anybody can check what the page says.
func (s *sheet) verify() {
	t := s.t
	if ledger.CheckID(t.ID) != nil {
		return
	}
	ref, dir := cmp.Or(s.o.LedgerRef, "refs/agent/ledger"), ledger.Dir(t.ID)
	at := s.o.LedgerCommit
	if !canon.IsGitID(at) {
		at = ref
	}
	s.Markup("<section>\n<h2 id=\"verify\">Check it yourself</h2>\n<p>In a clone of the repository. The first line brings the ledger; the last one checks every rule of it.</p>\n<pre tabindex=\"0\" role=\"region\" aria-label=\"Commands to verify\"><code>")
	if s.o.Elsewhere {
		s.say("countersign sync", "")
	} else {
		s.say("git fetch origin "+view.ShellQuote(ref+":"+ref), "")
	}
	s.say("git log --format='%h %ad %s' "+view.ShellQuote(at)+" -- "+dir, "each stage is a commit")
	if canon.IsHex64(t.PatchID) && t.proposal.PatchRedactedSHA256 == "" {
		s.say("git show "+view.ShellQuote(at+":"+dir+"/"+ledger.PatchFile(t.PatchID))+" | sha256sum", t.PatchID)
	}
	if n := len(t.Commits); n > 0 && canon.IsGitID(t.Commits[n-1]) && t.Kind != ledger.KindPullRequest {
		for _, f := range t.view.Files {
			if f.After != nil && showsWhole(f.Path) {
				s.say("git show "+view.ShellQuote(t.Commits[n-1]+":"+f.Path)+" | sha256sum", strings.TrimPrefix(*f.After, "sha256:"))
			}
		}
	}
	s.say("countersign show "+t.ID, "")
	s.say("countersign audit", "")
	s.Markup("</code></pre>\n")
	if t.proposal != nil {
		s.Markup("<details><summary>SHA-256 of each file, before and after</summary>\n")
		s.wide("Files", "File", "Before", "After")
		for _, f := range t.view.Files {
			s.row(Code(f.Path), hash(f.Before), hash(f.After))
		}
		s.endWide()
		s.Markup("</details>\n")
	}
	s.Markup("</section>\n")
}

// say is a command, and what it prints if all is well.
func (s *sheet) say(command, prints string) {
	s.Lines(command + "\n")
	if prints != "" {
		s.Markup(`<span class="faint">`).Lines("# " + prints + "\n").Markup("</span>")
	}
}

// showsWhole reports whether a path can be copied from the page as it is.
func showsWhole(path string) bool {
	var b Body
	return !strings.Contains(string(b.Text(path).b), `class="hidden"`)
}
