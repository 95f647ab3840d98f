package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/fault"
)

// ErrNoSSH is a machine without the program that connects to ssh servers.
var ErrNoSSH error = &fault.Error{Message: "there is no ssh program", Try: "install OpenSSH's client, or use an https address"}

// SSH is the program that connects to ssh servers, and what it is told besides
// the user's own ssh_config(5). It is the one that git would run: the zero value
// is ssh. None of it may come from a repository's configuration, which could
// then run any program (T84).
type SSH struct {
	// Command is a command with its options, as GIT_SSH_COMMAND has it. The
	// shell reads it, as with git: whoever sets it is the user.
	Command string

	// Program is a program alone, as GIT_SSH has it. Command goes before it.
	Program string

	// Variant is what options the program takes, as GIT_SSH_VARIANT has it: ssh,
	// plink, putty, tortoiseplink or simple. "" and auto tell it by the
	// program's name, and else by whether it takes ssh's option -G.
	Variant string

	KeyFile    string   // the only key that is offered; "" leaves that to the program
	KnownHosts []string // the only files with servers' keys; none leaves that to the program
	Batch      bool     // nobody is there to answer a question of the program's
}

// newSSHClient runs the services on r's server, by way of the user's ssh.
func newSSHClient(r Remote, o SSH) *childClient {
	variant := ""
	return &childClient{
		command: func(ctx context.Context, service string) (*exec.Cmd, error) {
			if _, err := exec.LookPath(o.program(ctx).Args[0]); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrNoSSH, err)
			}
			if variant == "" {
				variant = o.variant(ctx, r)
			}
			options, err := o.options(variant, r.port)
			if err != nil {
				return nil, err
			}
			return o.program(ctx, append(options, r.destination(), "git-"+service+" "+quote(r.path))...), nil
		},
		why: whySSHEnded,
	}
}

func (o SSH) program(ctx context.Context, args ...string) *exec.Cmd {
	if o.Command != "" {
		return exec.CommandContext(ctx, "sh", append([]string{"-c", o.Command + ` "$@"`, o.Command}, args...)...)
	}
	return exec.CommandContext(ctx, cmp.Or(o.Program, "ssh"), args...)
}

// variant is what options the program takes, told as git tells it.
func (o SSH) variant(ctx context.Context, r Remote) string {
	if o.Variant != "" && o.Variant != "auto" {
		return o.Variant
	}
	name := cmp.Or(o.Program, "ssh")
	if words := strings.Fields(o.Command); len(words) > 0 {
		name = words[0]
	}
	switch name = strings.TrimSuffix(strings.ToLower(filepath.Base(name)), ".exe"); name {
	case "ssh", "plink", "tortoiseplink":
		return name
	}
	probe := o.program(ctx, "-G", r.destination()) // prints the configuration, and does not connect
	probe.WaitDelay = lastWords
	if probe.Run() == nil {
		return "ssh"
	}
	return "simple"
}

// options are those that go before the destination.
func (o SSH) options(variant string, port int) (args []string, err error) {
	if o.KeyFile != "" {
		if _, err := os.Stat(o.KeyFile); err != nil { // ssh would go on with other keys
			return nil, &AuthError{Err: fmt.Errorf("reading the key: %w", err)}
		}
	}
	portFlag := ""
	switch variant {
	case "ssh":
		portFlag = "-p"
		if o.Batch {
			args = append(args, "-oBatchMode=yes")
		}
		if o.KeyFile != "" {
			args = append(args, "-oIdentitiesOnly=yes", "-oIdentityFile="+quoteFiles(o.KeyFile))
		}
		if len(o.KnownHosts) > 0 {
			files := quoteFiles(o.KnownHosts...)
			args = append(args, "-oStrictHostKeyChecking=yes", "-oUserKnownHostsFile="+files, "-oGlobalKnownHostsFile="+files)
		}
	case "plink", "putty", "tortoiseplink":
		portFlag = "-P"
		if o.Batch || variant == "tortoiseplink" {
			args = append(args, "-batch")
		}
		if o.KeyFile != "" {
			args = append(args, "-i", o.KeyFile)
		}
	case "simple":
		if o.KeyFile != "" {
			return nil, errors.New("the ssh program takes no options (GIT_SSH_VARIANT is simple), and so no key")
		}
	default:
		return nil, fmt.Errorf("git knows no GIT_SSH_VARIANT %q", variant)
	}
	if len(o.KnownHosts) > 0 && variant != "ssh" {
		return nil, errors.New("only OpenSSH can be told in which file servers' keys are (SSH_KNOWN_HOSTS)")
	}
	switch {
	case port == 0:
	case portFlag == "":
		return nil, errors.New("the ssh program takes no options (GIT_SSH_VARIANT is simple), and so no port")
	default:
		args = append(args, portFlag, strconv.Itoa(port))
	}
	return args, nil
}

// quoteFiles is a list of files as ssh_config(5) has it: absolute, as "~" means
// something at the beginning.
func quoteFiles(files ...string) string {
	var quoted []string
	for _, f := range files {
		if abs, err := filepath.Abs(f); err == nil {
			f = abs
		}
		quoted = append(quoted, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(f)+`"`)
	}
	return strings.Join(quoted, " ")
}

// destination is the argument that names the server and the user there.
// ParseRemote has seen to it that neither can be taken for an option.
func (r Remote) destination() string {
	if r.user != nil && r.user.Username() != "" {
		return r.user.Username() + "@" + r.host
	}
	return r.host
}

// quote is for the server's shell, as git does it.
func quote(path string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'"
}

// whySSHEnded tells ssh's own failures, which end with 255, from those of what
// it ran. By the words only a hint is chosen.
func whySSHEnded(status int, said string) error {
	if status <= 0 {
		return nil
	}
	err := fmt.Errorf("ssh ended with status %d", status)
	if said != "" {
		err = fmt.Errorf("%w: %s", err, oneLine(said))
	}
	switch {
	case status != 255:
		return err
	case strings.Contains(said, "Host key verification failed"):
		return &fault.Error{
			Message: "the server's key is not trusted: " + err.Error(), Cause: err,
			Try: "compare the server's key with what its owner publishes: ssh asks you about it once",
		}
	case strings.Contains(said, "Permission denied"), strings.Contains(said, "Too many authentication failures"):
		return &AuthError{Err: err}
	}
	return &NetworkError{err}
}
