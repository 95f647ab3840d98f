package setup

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/scaffold"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// passkeyType is the type of every passkey (docs/spec/signatures.md, S-33).
const passkeyType = "sk-ecdsa-sha2-nistp256@openssh.com"

// loginForm is a login as the page takes it: no pattern, which would list the key for others too.
var loginForm = canon.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func passkeyCommand(c *console.Console) *cobra.Command {
	add := &cobra.Command{
		Use:   "add [FILE]",
		Short: "Add the line of a passkey to the list of keys",
		Long: `add takes the line that the page decide/ of the site makes (docs/passkeys.md), from FILE, from a prompt or from standard input,
checks that it is a passkey of the site that the Policy names (approvals.passkeys), and adds it to the list of keys (approvals.keys) in
the working tree. It counts once the list is on the branch whose Policy is in force.`,
		Example: "  countersign passkey add\n  countersign passkey add line.txt",
		Args:    console.UpToOne,
		RunE:    func(cmd *cobra.Command, args []string) error { return passkeyAdd(cmd.Context(), c, args) },
	}
	return console.Group("passkey", "List the passkeys of people who approve from a phone", "  countersign passkey add", add)
}

func passkeyAdd(ctx context.Context, c *console.Console, args []string) error {
	s, rules, err := rulesNow(ctx, c)
	if err != nil {
		return err
	}
	asked := rules.Policy.Approvals
	if asked.Passkeys == "" || asked.Keys == "" {
		return fault.Refuse("the Policy takes no passkeys: it has no approvals.passkeys, or no approvals.keys", "docs/passkeys.md says how to set them up")
	}
	place, done, err := initPlace(s, false)
	if err != nil {
		return err
	}
	defer done()
	tree, err := place.Tree(ctx)
	if err != nil {
		return err
	}
	f := scaffold.Planned{File: scaffold.File{Path: asked.Keys}, State: scaffold.Joined}
	if f.Have, err = scaffold.ReadThere(tree, f.Path); err != nil {
		return err
	}
	line, who, key, err := passkeyLine(c, args, asked.Passkeys)
	if err != nil {
		return err
	}
	switch listed, _ := sshsig.ParseAllowedSigners(f.Have); {
	case listed.HasLine(line):
		f.State = scaffold.Same
	case listed.Lists(key):
		return fault.Refuse(f.Path+" lists that key already, in another line", "a key is of one person: change that line")
	}
	f.Want = slices.Clone(f.Have)
	if len(f.Want) > 0 && !bytes.HasSuffix(f.Want, []byte("\n")) {
		f.Want = append(f.Want, '\n')
	}
	f.Want = append(f.Want, line+"\n"...)
	if _, err := place.Write(ctx, []scaffold.Planned{f}, scaffold.Settings{}); err != nil {
		return err
	}
	text := fmt.Sprintf("%s has the passkey of %s, which counts once that is committed and merged\n", f.Path, who)
	return c.Result(console.Document{"file": f.Path, "line": line, "added": f.State == scaffold.Joined}, text)
}

// passkeyLine asks for a line, and returns it with the name and the key that it lists.
func passkeyLine(c *console.Console, args []string, origin string) (line, who, key string, err error) {
	const most = 4096 // bytes
	var raw []byte
	person := c.Person()
	switch {
	case len(args) > 0:
		raw, err = c.ReadInput(args[0], most)
	case person != nil:
		defer person.Close()
		line, err = c.Answer(person, "Make a passkey on the page decide/ of "+origin+", and paste the line that it shows: ")
		raw = []byte(line)
	default:
		raw, err = c.ReadInput("-", most)
	}
	if err != nil {
		return "", "", "", err
	}
	line = strings.TrimSpace(string(raw))
	listed, err := sshsig.ParseAllowedSigners([]byte(line))
	lines := listed.Lines()
	form := func(login, key string) string {
		return fmt.Sprintf("%s namespaces=%q %s %s", login, approval.Namespace, passkeyType, key)
	}
	ours := err == nil && len(lines) == 1 && lines[0].Text == line && len(lines[0].Principals) == 1 && loginForm().MatchString(lines[0].Principals[0])
	if !ours || lines[0].Type == passkeyType && line != form(lines[0].Principals[0], lines[0].Key) {
		return "", "", "", fault.Refuse("that is not one line of a passkey: "+form("LOGIN", "KEY"), "copy the line that the page decide/ shows, whole")
	}
	return line, lines[0].Principals[0], lines[0].Type + " " + lines[0].Key, isPasskeyOf(lines[0], origin)
}

// isPasskeyOf reports whether a line is of a passkey of an origin's host: its key ends with the host, as SSH writes a string.
func isPasskeyOf(l sshsig.Line, origin string) error {
	site, err := url.Parse(origin)
	if err != nil {
		return err
	}
	host := site.Hostname()
	key, err := base64.StdEncoding.DecodeString(l.Key)
	switch {
	case err != nil:
		return err
	case l.Type != passkeyType:
		return fault.Refuse("the key is "+l.Type+", and a passkey is "+passkeyType, "an SSH key is added to the list by hand")
	case !bytes.HasSuffix(key, append(binary.BigEndian.AppendUint32(nil, uint32(len(host))), host...)):
		return fault.Refuse("the passkey is of another site than "+escape.ShellQuote(origin)+", whose pages cannot ask it", "make one on the page decide/ of that site")
	}
	return nil
}
