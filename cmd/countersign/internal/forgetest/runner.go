package forgetest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// RunnerVersion is the version of the runner that .ci/forge builds.
const RunnerVersion = "v1.0.8"

// RunnerOptions are how a runner differs from one that runs one job at a time.
type RunnerOptions struct {
	Jobs int               // at once; 0 is 1
	Env  map[string]string // that jobs have beside PATH and HOME
	Path string            // PATH of jobs; "" is that of the tests
}

// A Runner runs jobs whose "runs-on" is ubuntu-latest, as programs of this machine and as the user that
// servers run as.
type Runner struct {
	Dir string // its HOME

	s       *Server
	program string
	options RunnerOptions
	process *process
}

// Runner registers a runner for all repositories, and has it wait for jobs till the test ends.
func (s *Server) Runner(o RunnerOptions) *Runner {
	s.t.Helper()
	r := &Runner{s: s, program: filepath.Join(built(s.t, "runner-"+RunnerVersion), "runner"), Dir: directory(s.t), options: o}
	var config strings.Builder
	fmt.Fprintf(&config, `runner:
  file: %s
  capacity: %d
  fetch_interval: 200ms
  fetch_interval_max: 200ms
  labels: ["ubuntu-latest:host"]
cache:
  enabled: false
host:
  workdir_parent: %s
`, filepath.Join(r.Dir, "registration"), max(o.Jobs, 1), filepath.Join(r.Dir, "work"))
	check(s.t, os.WriteFile(r.config(), []byte(config.String()), 0o644))
	var made struct{ Token string }
	s.Must(s.Admin, http.MethodGet, "/admin/runners/registration-token", nil, &made)
	register := r.command("register", "--no-interactive", "--instance", s.URL, "--token", made.Token, "--name", "runner", "--labels", "ubuntu-latest:host")
	if out, err := register.CombinedOutput(); err != nil {
		s.t.Fatalf("gitea: registering the runner: %v\n%s", err, out)
	}
	r.Start()
	return r
}

func (r *Runner) config() string { return filepath.Join(r.Dir, "config.yaml") }

func (r *Runner) command(args ...string) *exec.Cmd {
	cmd := exec.Command(r.program, append([]string{"--config", r.config()}, args...)...)
	cmd.Dir = r.Dir
	cmd.Env = []string{"PATH=" + cmp.Or(r.options.Path, os.Getenv("PATH")), "HOME=" + r.Dir, "TMPDIR=" + r.Dir, "GIT_CONFIG_NOSYSTEM=1"}
	for _, name := range slices.Sorted(maps.Keys(r.options.Env)) {
		cmd.Env = append(cmd.Env, name+"="+r.options.Env[name])
	}
	asOwn(cmd)
	return cmd
}

// Start starts a runner that was killed.
func (r *Runner) Start() { r.process = start(r.s.t, r.command("daemon")) }

// Kill ends the runner at once. What its jobs have started may go on.
func (r *Runner) Kill() { r.process.kill() }

// KillAll ends the runner and whatever its jobs have started, as where the machine goes down. Elsewhere than on Linux
// the latter may go on.
func (r *Runner) KillAll() {
	r.s.t.Helper()
	r.process.kill()
	check(r.s.t, killInside(r.Dir))
}

// A Run is one of a workflow.
type Run struct {
	ID         int64
	Event      string // as "pull_request"; "pull_request_comment" is what jobs see as "issue_comment"
	Status     string // "queued", "in_progress", "completed"
	Conclusion string // "success", "failure", "cancelled", "skipped"
	Path       string // file of the workflow and the ref, as "ci.yml@refs/heads/main"
	HeadSHA    string `json:"head_sha"`
	Title      string `json:"display_title"`
}

// Runs are those of the repository, the oldest first; none where the server does not tell.
func (r *Repository) Runs() []Run {
	r.t.Helper()
	if !r.ListsRuns() {
		return nil
	}
	var told struct {
		Runs []Run `json:"workflow_runs"`
	}
	r.Must(r.Admin, http.MethodGet, r.Path("actions", "runs?limit=50"), nil, &told)
	slices.SortFunc(told.Runs, func(a, b Run) int { return cmp.Compare(a.ID, b.ID) })
	return told.Runs
}

// WaitRuns waits till the repository had n runs and all have ended, and returns them.
func (r *Repository) WaitRuns(n int) []Run {
	r.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		runs := r.Runs()
		if len(runs) >= n && !slices.ContainsFunc(runs, func(run Run) bool { return run.Status != "completed" }) {
			return runs
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("gitea: %d runs did not come to their end: %+v", n, runs)
		}
	}
}

// RunLog is what the jobs of a run printed.
func (r *Repository) RunLog(run int64) string {
	r.t.Helper()
	var told struct{ Jobs []struct{ ID int64 } }
	r.Must(r.Admin, http.MethodGet, r.Path("actions", "runs", run, "jobs"), nil, &told)
	var log strings.Builder
	for _, job := range told.Jobs {
		_, raw := r.do(r.Admin, http.MethodGet, r.Path("actions", "jobs", job.ID, "logs"), nil, nil)
		log.Write(raw)
	}
	return log.String()
}

// Succeeded fails the test with the logs of the runs that did not succeed and were not skipped.
func (r *Repository) Succeeded(t testing.TB, runs []Run) {
	t.Helper()
	for _, run := range runs {
		if run.Conclusion != "success" && run.Conclusion != "skipped" {
			t.Errorf("gitea: run %d of %s on %s: %s\n%s", run.ID, run.Path, run.Event, run.Conclusion, r.RunLog(run.ID))
		}
	}
}
