package console

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/sethvargo/go-githubactions"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A Step is the workflow step that the program runs in.
type Step struct{ gha *githubactions.Action }

// New returns the step that the environment describes. Workflow commands go to
// out, which must be the step's standard output.
func NewAction(getenv func(string) string, out io.Writer) Step {
	return Step{githubactions.New(githubactions.WithGetenv(getenv), githubactions.WithWriter(out))}
}

// Log is the step's output for all but its own commands: nothing that somebody wrote can be one there. The runner takes what follows
// "##[" anywhere in a line, and "::" at its begin, for a command.
func Log(out io.Writer) io.Writer { return stepLog{out} }

type stepLog struct{ out io.Writer }

var commandForm = canon.Regexp(`(?m)##\[|(^|[\r\x{85}\x{2028}\x{2029}])[\s\p{Z}]*::`)

func (l stepLog) Write(text []byte) (int, error) {
	broken := commandForm().ReplaceAllFunc(text, func(is []byte) []byte {
		return slices.Insert(slices.Clone(is), len(is)-1, ' ')
	})
	if _, err := l.out.Write(broken); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Input returns an input of action.yml, "" where it is not set.
func (s Step) Input(name string) string { return s.gha.GetInput(name) }

// Mask keeps a value out of the step's log.
func (s Step) Mask(value string) {
	if value != "" {
		s.gha.AddMask(value)
	}
}

// An Output is one of the transactions that the output "transactions" lists,
// each member as the output of that name.
type Output struct {
	Transaction   string `json:"transaction"`
	PatchID       string `json:"patch-id"`
	Fingerprint   string `json:"fingerprint"`
	PullRequest   int    `json:"pull-request,omitempty"`
	OwnDiff       bool   `json:"own-diff"` // of the pull request; else a proposal
	Status        string `json:"status"`
	Verdict       string `json:"verdict"`
	Outcome       string `json:"outcome"`
	AppliedCommit string `json:"applied-commit"`
	LedgerCommit  string `json:"ledger-commit"`
	Summary       string `json:"-"` // what the job summary gets, Markdown
}

// Settled is what a settlement leaves to the step.
type Settled struct {
	Outputs     []Output
	About       int      // which of them the outputs are of, -1 for none
	CheckURL    string   // of the check run about that one
	NeedsChecks []string // the transactions whose commands a job without rights is to run
	Denied      bool     // the bundle proposes what was denied
}

// Settled sets the outputs of a settlement.
func (s Step) Settled(done *Settled) error {
	if err := s.Publish(done.Outputs, done.About); err != nil {
		return err
	}
	switch {
	case done.About >= 0:
		s.CheckRun(done.CheckURL)
	case done.Denied:
		s.Denied()
	}
	line, err := json.Marshal(done.NeedsChecks)
	s.gha.SetOutput("needs-checks", string(line))
	return err
}

// Publish sets the outputs of action.yml, all of one transaction, and adds the
// reports to the job summary. about is which of all the outputs are of; none, or
// -1, leaves them empty.
func (s Step) Publish(all []Output, about int) error {
	for _, one := range all {
		s.gha.AddStepSummary(one.Summary)
	}
	var one Output
	if about >= 0 {
		one = all[about]
	}
	for name, value := range map[string]string{
		"transaction": one.Transaction, "patch-id": one.PatchID, "fingerprint": one.Fingerprint, "verdict": one.Verdict,
		"outcome": one.Outcome, "applied-commit": one.AppliedCommit, "ledger-commit": one.LedgerCommit,
	} {
		s.gha.SetOutput(name, value)
	}
	line, err := json.Marshal(all)
	s.gha.SetOutput("transactions", string(line))
	return err
}

// A Plan is what an event asks for.
type Plan struct {
	PullRequest int    // 0 for none
	Act         bool   // whether there is anything to do
	Stage       string // that does it: settle, or sweep for everything that is open
}

// Planned sets the outputs of the stage plan.
func (s Step) Planned(p Plan) {
	text := ""
	if p.PullRequest > 0 {
		text = strconv.Itoa(p.PullRequest)
	}
	s.gha.SetOutput("pull-request", text)
	s.gha.SetOutput("act", strconv.FormatBool(p.Act))
	s.gha.SetOutput("stage", p.Stage)
}

// Proposed sets the output that names the file with what is proposed.
func (s Step) Proposed(bundle string) { s.gha.SetOutput("bundle", bundle) }

// Temp is the job's folder for files of its own.
func (s Step) Temp() string { return s.gha.Getenv("RUNNER_TEMP") }

// Matrix sets the outputs that a job's strategy and its condition go by: GitHub
// takes no matrix without jobs.
func (s Step) Matrix(matrix any, jobs, leftOut int) error {
	line, err := json.Marshal(matrix)
	s.gha.SetOutput("matrix", string(line))
	s.gha.SetOutput("act", strconv.FormatBool(jobs > 0))
	s.gha.SetOutput("left-out", strconv.Itoa(leftOut))
	return err
}

// Site sets the output that says whether all pages of the site are there.
func (s Step) Site(complete bool) { s.gha.SetOutput("site", strconv.FormatBool(complete)) }

// RunNumber is the number of the workflow's run, which goes up by one, "" where
// there is none.
func (s Step) RunNumber() string { return s.gha.Getenv("GITHUB_RUN_NUMBER") }

// CheckRun sets the output that names the published check run.
func (s Step) CheckRun(url string) { s.gha.SetOutput("check-run-url", url) }

// Denied sets the verdict of a patch that was refused before it became a
// transaction.
func (s Step) Denied() { s.gha.SetOutput("verdict", "denied") }

// MaxJobs is how many jobs GitHub makes of one matrix (GitHub's documentation,
// "Actions limits").
const MaxJobs = 256

// A Job is one element of a Matrix: a pull request, whose transactions are
// settled together, or a transaction that is for none. It has nothing in it that
// a proposer or a pull request chose.
type Job struct {
	Name        string `json:"name"`
	PullRequest int    `json:"pull_request,omitempty"`
	Transaction string `json:"transaction,omitempty"`
}

// A Matrix is what strategy.matrix takes. Of a list that is too long it is one
// part, and LeftOut counts the others' jobs.
type Matrix struct {
	Include []Job `json:"include"`
	LeftOut int   `json:"-"`
}

// Jobs makes jobs of open transactions, in their order.
func Jobs(open []ledger.Transaction, pullsOnly bool) []Job {
	jobs := []Job{}
	seen := map[int]bool{}
	for _, tx := range open {
		number := 0
		if p := tx.Pointers.Proposal; p != nil {
			number = p.PullRequest
		}
		switch {
		case number == 0 && !pullsOnly:
			jobs = append(jobs, Job{Name: tx.TransactionID, Transaction: tx.TransactionID})
		case number > 0 && !seen[number]:
			seen[number] = true
			jobs = append(jobs, Job{Name: fmt.Sprintf("pull request %d", number), PullRequest: number})
		}
	}
	return jobs
}

// Part is one part of the jobs, of at most limit. A number that goes up by one
// from run to run takes every job in its turn, also where the oldest stay open
// because people have not answered.
func Part(jobs []Job, limit, number int) Matrix {
	parts := max((len(jobs)+limit-1)/limit, 1)
	from := number % parts * limit
	part := jobs[from:min(from+limit, len(jobs))]
	return Matrix{part, len(jobs) - len(part)}
}
