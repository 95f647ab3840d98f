package agent

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/sandbox"
)

// A Profile is what an agent takes besides its scratch tree: variables, and files by their names below the home. No
// file that it writes may hold what starts a program later: such settings are copied, and its changes to them thrown away.
type Profile struct {
	Name  string   `json:"name"` // the command's as well
	Env   []string `json:"env"`
	Copy  []string `json:"copy"`  // files into the agent's own home
	Read  []string `json:"read"`  // files and directories
	Write []string `json:"write"` // files and directories, where they are there
	Log   string   `json:"log"`   // of a session: a pattern of files below one of Write

	Set map[string]string `json:"set"` // variables with these values, which allow what init --agents has the agent deny elsewhere

	Trust *Trust `json:"trust"` // nil for none
}

// Trust has an agent take the project's settings in a scratch tree, as it asks a person to elsewhere: lines that end a copied file of TOML,
// where DIR is the scratch tree in quotes. They cannot be added to a file that has Table as one value.
type Trust struct {
	File, Table, Lines string
}

//go:embed profiles.json
var profiles []byte

// none is the profile of any other program.
const none = "none"

// Profiles are all that are known.
func Profiles() (all []Profile) {
	if err := json.Unmarshal(profiles, &all); err != nil {
		panic("agent: profiles.json: " + err.Error())
	}
	return all
}

// ProfileNames are their names.
func ProfileNames() (names []string) {
	for _, p := range Profiles() {
		names = append(names, p.Name)
	}
	return names
}

// ours are the variables that the agent has from this program.
func (p Profile) ours() map[string]string {
	all := map[string]string{InScratch: seenChannel}
	maps.Copy(all, p.Set)
	return all
}

// ProfileOf returns the profile of a name or, where that is "", of a command.
func ProfileOf(name, command string) (Profile, bool) {
	all := Profiles()
	find := func(name string) int { return slices.IndexFunc(all, func(p Profile) bool { return p.Name == name }) }
	at := find(name)
	if name == "" {
		if at = find(filepath.Base(command)); at < 0 {
			at = find(none)
		}
	}
	if at < 0 {
		return Profile{}, false
	}
	return all[at], true
}

// maxCopied is how large a file may be that is copied into the agent's home.
const maxCopied = 16 << 20

// lend fills an empty directory that is to be the agent's home, and returns what the agent sees there. tree is the scratch tree.
func (p Profile) lend(from, home, tree string) ([]sandbox.Bind, error) {
	binds := []sandbox.Bind{{Source: home, Target: seenHome, Write: true}}
	if !filepath.IsAbs(from) { // the person has none
		return binds, p.Trust.add(home, tree)
	}
	for _, name := range p.Copy {
		if err := copyFile(filepath.Join(from, name), filepath.Join(home, name)); err != nil {
			return nil, fmt.Errorf("copying %s for the agent: %w", name, err)
		}
	}
	if err := p.Trust.add(home, tree); err != nil {
		return nil, err
	}
	for i, name := range slices.Concat(p.Read, p.Write) {
		source, err := filepath.EvalSymlinks(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		bind := sandbox.Bind{Source: source, Target: filepath.Join(seenHome, name), Write: i >= len(p.Read)}
		if info, err := os.Stat(source); err == nil && info.IsDir() && bind.Write { // no link may be left there
			bind.Target = filepath.Join(sandbox.Lent, name)
			link := filepath.Join(home, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(bind.Target, link)); err != nil {
				return nil, err
			}
		}
		binds = append(binds, bind)
	}
	return binds, nil
}

// add adds the lines to the file in the agent's home.
func (t *Trust) add(home, tree string) error {
	if t == nil {
		return nil
	}
	file := filepath.Join(home, t.File)
	have, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range bytes.Lines(have) {
		if name, _, is := bytes.Cut(line, []byte("=")); is && string(bytes.TrimSpace(name)) == t.Table {
			return nil
		}
	}
	dir, err := json.Marshal(tree) // as TOML writes a string
	if err != nil {
		return err
	}
	added := append(have, "\n"+strings.ReplaceAll(t.Lines, "DIR", string(dir))...)
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, added, 0o600))
}

// copyFile copies a regular file, if it is there.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Size() > maxCopied:
		return errors.New("it is no file, or too large")
	}
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	return err
}
