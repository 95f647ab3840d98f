package witness

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A File says which log is meant, who its witnesses are, and how many of them it takes
// (c2sp.org/tlog-policy). Each line is one of
//
//	log VKEY [URL]
//	witness NAME VKEY [URL]
//	group NAME K|any|all MEMBER…
//	quorum NAME
//
// Empty lines, and those that begin with #, are left out.
type File struct {
	Logs      []Key
	Witnesses []Witness

	groups map[string]group
	quorum string // of a witness or group, "" if there is none
}

// A Witness is somebody who signs checkpoints. URL is where it is asked to, with a slash at its
// end; "" if that is not known.
type Witness struct {
	Name string
	Key  Key
	URL  string
}

type group struct {
	need    int
	members []string
}

// The bounds of a file.
const (
	mostFile  = 256 << 10
	mostLines = 1000
)

// ParseFile reads a file. An error about one line begins with its number, counted from 1.
func ParseFile(raw []byte) (File, error) {
	f := File{groups: map[string]group{}}
	lines := strings.Split(string(raw), "\n")
	if len(raw) > mostFile || len(lines) > mostLines {
		return File{}, fmt.Errorf("it has more than %d lines or %d KiB", mostLines, mostFile>>10)
	}
	for i, line := range lines {
		if err := f.line(line); err != nil {
			return File{}, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return f, nil
}

func (f *File) line(line string) error {
	odd := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	if strings.ContainsFunc(line, odd) {
		return errors.New("it has a control character")
	}
	words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return nil
	}
	switch words[0] {
	case "log":
		return f.addLog(words[1:])
	case "witness":
		return f.addWitness(words[1:])
	case "group":
		return f.addGroup(words[1:])
	case "quorum":
		switch {
		case len(words) != 2:
			return errors.New("it has to be: quorum NAME")
		case f.quorum != "":
			return errors.New("there is a quorum already")
		case words[1] == "none":
			return errors.New("quorum none demands nobody")
		case !f.known(words[1]):
			return errors.New("the quorum is no witness or group of a line before")
		}
		f.quorum = words[1]
		return nil
	}
	return errors.New("it begins with none of log, witness, group, quorum")
}

func (f *File) addLog(words []string) error {
	if len(words) < 1 || len(words) > 2 {
		return errors.New("it has to be: log VKEY")
	}
	k, err := ParseKey(words[0])
	if err != nil {
		return fmt.Errorf("the log's key: %w", err)
	}
	if k.cosigns {
		return errors.New("the key is a witness's, not a log's")
	}
	if slices.Contains(f.Logs, k) {
		return errors.New("the key is there already")
	}
	f.Logs = append(f.Logs, k)
	return nil
}

func (f *File) addWitness(words []string) error {
	if len(words) < 2 || len(words) > 3 {
		return errors.New("it has to be: witness NAME VKEY [URL]")
	}
	w := Witness{Name: words[0]}
	if err := f.newName(w.Name); err != nil {
		return err
	}
	var err error
	if w.Key, err = ParseKey(words[1]); err != nil {
		return fmt.Errorf("the witness's key: %w", err)
	}
	if !w.Key.cosigns {
		return errors.New("the key is a log's, not a witness's (its kind is 01, not 04)")
	}
	// The same key under another name would be one witness that counts twice.
	if slices.ContainsFunc(f.Witnesses, func(o Witness) bool { return o.Key.public == w.Key.public }) {
		return errors.New("the key is there already")
	}
	if len(words) == 3 {
		if w.URL, err = submission(words[2]); err != nil {
			return err
		}
	}
	f.Witnesses = append(f.Witnesses, w)
	return nil
}

// submission reads the address of a witness: https, or http on this machine.
func submission(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#") || u.Opaque != "" {
		return "", errors.New("the address of a witness is https://HOST/PATH, without user, query or fragment")
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())) {
		return "", errors.New("the address of a witness has to begin with https:// (http:// is for this machine)")
	}
	return strings.TrimRight(u.Scheme+text[len(u.Scheme):], "/") + "/", nil // in small letters
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func (f *File) addGroup(words []string) error {
	if len(words) < 3 {
		return errors.New("it has to be: group NAME K|any|all MEMBER…")
	}
	name, g := words[0], group{members: words[2:]}
	if err := f.newName(name); err != nil {
		return err
	}
	for i, m := range g.members {
		if !f.known(m) {
			return errors.New("a member is no witness or group of a line before")
		}
		if slices.Contains(g.members[:i], m) || f.hasMember(m) {
			return errors.New("a member is in a group already")
		}
	}
	switch words[1] {
	case "any":
		g.need = 1
	case "all":
		g.need = len(g.members)
	default:
		n, err := strconv.Atoi(words[1])
		if err != nil || n < 1 || n > len(g.members) || strconv.Itoa(n) != words[1] {
			return fmt.Errorf("how many it takes has to be any, all, or 1 to %d", len(g.members))
		}
		g.need = n
	}
	f.groups[name] = g
	return nil
}

func (f *File) newName(name string) error {
	if !IsName(name) || name == "none" {
		return errors.New("the name cannot be one")
	}
	if f.known(name) {
		return errors.New("the name is there already")
	}
	return nil
}

func (f *File) known(name string) bool {
	_, isGroup := f.groups[name]
	return isGroup || slices.ContainsFunc(f.Witnesses, func(w Witness) bool { return w.Name == name })
}

func (f *File) hasMember(name string) bool {
	for _, g := range f.groups {
		if slices.Contains(g.members, name) {
			return true
		}
	}
	return false
}

// Origin is the name of the log that the file is about: it must be one.
func (f File) Origin() (string, error) {
	if len(f.Logs) == 0 {
		return "", errors.New("it has no line that begins with log")
	}
	for _, k := range f.Logs {
		if k.name != f.Logs[0].name {
			return "", errors.New("its logs have different names, and a ledger has one")
		}
	}
	return f.Logs[0].name, nil
}

// Demands reports whether the file itself says whose word is needed.
func (f File) Demands() bool { return f.quorum != "" }

// covered is how much is vouched for by as many witnesses as the file and atLeast ask for, where
// size is how much each of them vouches for. Who vouches for a tree vouches for all that it began with.
func (f File) covered(size map[string]int64, atLeast int) int64 {
	var of func(name string) int64
	of = func(name string) int64 {
		g, isGroup := f.groups[name]
		if !isGroup {
			return size[name]
		}
		var each []int64
		for _, m := range g.members {
			each = append(each, of(m))
		}
		return nth(each, g.need)
	}
	var each []int64
	for _, w := range f.Witnesses {
		each = append(each, size[w.Name])
	}
	switch {
	case f.quorum == "" && atLeast < 1:
		return 0 // nobody is asked for, so nothing is vouched for
	case f.quorum == "":
		return nth(each, atLeast)
	case atLeast < 1:
		return of(f.quorum)
	}
	return min(of(f.quorum), nth(each, atLeast))
}

// nth is the n-th largest, 0 where there are not so many.
func nth(sizes []int64, n int) int64 {
	if n > len(sizes) {
		return 0
	}
	slices.SortFunc(sizes, func(a, b int64) int { return int(max(min(b-a, 1), -1)) })
	return sizes[n-1]
}
