package setup

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

//go:embed demo
var demoFiles embed.FS

// demonstration is a walk of a patch through every stage in a throw-away repository. Every step is a real command
// line of the program, and an exit code that is not the expected one ends it.
type demonstration struct {
	*console.Console
	dir  string
	repo *gitstore.Repo
	last string // the transaction of the last command that had one
	id   string // the first one
}

// runDemo makes a folder and demonstrates in it.
func runDemo(ctx context.Context, c *console.Console) error {
	quiet := c.Knowing(c.Finder()) // --json: the demo itself is silent
	if c.Flags.JSON {
		quiet.Stdout = io.Discard
	}
	dir, err := os.MkdirTemp("", "countersign-demo-")
	if err != nil {
		return err
	}
	d := &demonstration{Console: quiet, dir: dir}
	for _, step := range []func(context.Context) error{d.prepare, d.propose, d.approve, d.settle, d.deny, d.sign, d.forge, d.close} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("demo in %s: %w", dir, err)
		}
	}
	if !c.Flags.JSON {
		return nil
	}
	return c.PrintJSON(console.Document{"directory": dir, "transaction_id": d.id})
}

func (d *demonstration) tell(text string) error {
	return d.Print("\n" + strings.TrimSpace(text) + "\n")
}

// run shows and runs a command line of this program.
func (d *demonstration) run(want int, args ...string) error {
	if err := d.Print(session.Style(d.Console).Bold("$ countersign "+escape.ShellWords(args)) + "\n"); err != nil {
		return err
	}
	code, done := d.CommandTo(d.Stdout, d.Stdout, false, append([]string{"--no-pager", "-C", d.dir}, args...)...)
	d.last = cmp.Or(done.Transaction, d.last)
	if code != want {
		return fmt.Errorf("countersign %s: exit code %d, expected %d", args[0], code, want)
	}
	return nil
}

func (d *demonstration) write(name, source string) error {
	data, err := demoFiles.ReadFile(path.Join("demo", source))
	if err != nil {
		return err
	}
	full := filepath.Join(d.dir, filepath.FromSlash(name))
	return errors.Join(os.MkdirAll(filepath.Dir(full), 0o777), os.WriteFile(full, data, 0o666))
}

func (d *demonstration) prepare(ctx context.Context) error {
	err := errors.Join(
		d.write("greet/greet.go", "greet.go.txt"),
		os.WriteFile(filepath.Join(d.dir, "go.mod"), []byte("module example.test/greet\n\ngo 1.24\n"), 0o666),
	)
	if err != nil {
		return err
	}
	if d.repo, err = gitstore.Init(d.dir); err != nil {
		return err
	}
	if _, err := d.repo.CommitAll(ctx, "greet: first version", "demo", d.Now()); err != nil {
		return err
	}
	if err := d.beSomebody(); err != nil {
		return err
	}
	return d.tell("1. greet.go in " + d.dir + " never closes a file; an agent's patch does.")
}

// beSomebody gives the demo's repository the Git identity that a decision needs, where
// the person who looks on has none.
func (d *demonstration) beSomebody() error {
	settings, err := d.repo.Settings(d.Getenv)
	if err != nil || settings.Email != "" {
		return err
	}
	config, err := os.OpenFile(filepath.Join(d.dir, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = config.WriteString("[user]\n\tname = You\n\temail = you@example.org\n")
	return errors.Join(err, config.Close())
}

// diff writes what an agent would send: the difference between HEAD and these
// files, as a Git diff.
func (d *demonstration) diff(ctx context.Context, to string, sources map[string]string) error {
	head, err := d.repo.Head(ctx)
	if err != nil {
		return err
	}
	base, err := d.repo.Tree(ctx, head)
	if err != nil {
		return err
	}
	after := map[string]*patch.File{}
	for name, source := range sources {
		data, err := demoFiles.ReadFile(path.Join("demo", source))
		if err != nil {
			return err
		}
		after[name] = &patch.File{Mode: patch.Regular, Data: data}
	}
	set, err := patch.NewTree(base).Between(after)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.dir, ".git", to), set.Bytes(), 0o666)
}

func (d *demonstration) propose(ctx context.Context) error {
	if err := d.diff(ctx, "fix.patch", map[string]string{"greet/greet.go": "greet_fixed.go.txt"}); err != nil {
		return err
	}
	if err := d.run(0, "review", "--patch", ".git/fix.patch", "--summary", "close the file"); err != nil {
		return err
	}
	if err := d.tell("2. No file has changed; the ledger has the patch by its SHA-256: git log " + gitstore.LedgerRef); err != nil {
		return err
	}
	if err := d.tell("3. Nobody has approved it, so apply writes nothing (exit code 4)."); err != nil {
		return err
	}
	return d.run(console.ExitPending, "apply", "-q")
}

func (d *demonstration) approve(context.Context) error {
	if err := d.tell("4. A human reads the diff and approves these bytes."); err != nil {
		return err
	}
	if err := errors.Join(d.run(0, "diff"), d.run(0, "approve", lookup.ShortID(d.last), "--reason", "read it")); err != nil {
		return err
	}
	d.id = d.last
	return nil
}

func (d *demonstration) settle(context.Context) error {
	if err := d.tell("5. apply writes exactly these bytes and reads them back. validate proves the result."); err != nil {
		return err
	}
	return errors.Join(d.run(0, "apply"), d.run(0, "validate"))
}

func (d *demonstration) deny(ctx context.Context) error {
	if _, err := d.repo.CommitAll(ctx, "greet: close the file", "demo", d.Now()); err != nil {
		return err
	}
	if err := d.tell("6. The agent wants to run what the file says. Denied once, these bytes are refused for good."); err != nil {
		return err
	}
	if err := d.diff(ctx, "bad.patch", map[string]string{"greet/greet.go": "greet_bad.go.txt"}); err != nil {
		return err
	}
	const bad = ".git/bad.patch"
	if err := d.run(0, "review", "-q", "--patch", bad); err != nil {
		return err
	}
	return errors.Join(
		d.run(0, "deny", lookup.ShortID(d.last), "--reason", "it runs untrusted input"),
		d.run(console.ExitDenied, "review", "-q", "--patch", bad),
	)
}

// sign demands a signature, which whoever merely runs as the person cannot make.
func (d *demonstration) sign(ctx context.Context) error {
	if err := d.tell("7. An agent that runs as you can approve as you. So the Policy demands a signature by your own\n" +
		"   SSH key: the agent tries to approve its own patch and fails, and then the human signs."); err != nil {
		return err
	}
	settings, err := d.repo.Settings(d.Getenv)
	if err != nil {
		return err
	}
	if !strings.Contains(settings.Email, "@") {
		return d.tell("   (Your Git identity has no e-mail address to list a key under, so this step is left out.)")
	}
	key := filepath.Join(d.dir, ".git", "demo-key")
	if out, err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "demo", "-f", key).CombinedOutput(); errors.Is(err, exec.ErrNotFound) {
		return d.tell("   (OpenSSH's ssh-keygen is not on this machine, so this step is left out.)")
	} else if err != nil {
		return fmt.Errorf("making a key: %w: %s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		return err
	}
	err = errors.Join(
		os.Mkdir(filepath.Join(d.dir, ".github"), 0o777),
		os.WriteFile(filepath.Join(d.dir, ".github", "allowed_signers"), append([]byte(settings.Email+" "), public...), 0o666),
		os.WriteFile(filepath.Join(d.dir, filepath.FromSlash(".github/countersign.yml")), []byte("version: 1\napprovals: {keys: .github/allowed_signers, signed: require}\n"), 0o666),
	)
	if err != nil {
		return err
	}
	if _, err := d.repo.CommitAll(ctx, "Policy: signed approvals only", "demo", d.Now()); err != nil {
		return err
	}
	if err := d.diff(ctx, "notes.patch", map[string]string{"NOTES.md": "notes.md.txt"}); err != nil {
		return err
	}
	if err := d.run(0, "review", "-q", "--patch", ".git/notes.patch"); err != nil {
		return err
	}
	return errors.Join(
		d.run(console.ExitRefused, "approve", lookup.ShortID(d.last), "--reason", "looks good to me"),
		d.run(0, "approve", lookup.ShortID(d.last), "--sign", "--key", ".git/demo-key", "--reason", "read it"),
		d.run(0, "run", lookup.ShortID(d.last)),
	)
}

// forge rewrites the approved patch in a copy of the ledger, as somebody with
// write access to the repository could.
func (d *demonstration) forge(ctx context.Context) error {
	real, err := d.repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions{}})
	if err != nil {
		return err
	}
	const forgedRef = "refs/agent/forged"
	forged, err := d.repo.Ledger(forgedRef, gitstore.LedgerOptions{Pages: page.Versions{}})
	if err != nil {
		return err
	}
	snap, err := real.Snapshot(ctx)
	if err != nil {
		return err
	}
	log, err := lookup.Read(snap.Tree, d.id)
	if err != nil {
		return err
	}
	bad, err := os.ReadFile(filepath.Join(d.dir, ".git", "bad.patch"))
	if err != nil {
		return err
	}
	file := path.Join(ledger.Dir(d.id), log.Transaction().Pointers.LatestDiff)
	if err := forged.StartAt(snap.Tip); err != nil {
		return err
	}
	if _, err := forged.Append(ctx, snap.Tip, writing.Entry{Message: "nothing to see here\n", When: d.Now(), Files: map[string][]byte{file: bad}}); err != nil {
		return err
	}
	if err := d.tell("8. On a copy of the ledger somebody replaces the approved patch, and validate says so."); err != nil {
		return err
	}
	return d.run(console.ExitFailed, "--ledger-ref", forgedRef, "validate", lookup.ShortID(d.id))
}

func (d *demonstration) close(context.Context) error {
	if err := d.tell("9. The whole story is in the ledger. The folder stays: cd there to look around."); err != nil {
		return err
	}
	return d.run(0, "list")
}
