package packfile

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// A Commit is what the history of a ledger needs of a commit.
type Commit struct {
	Tree    ID
	Parents []ID
}

// ParseCommit reads the first lines of a commit: "tree <id>", then any number
// of "parent <id>" (git-hash-object(1) checks the same).
func ParseCommit(raw []byte) (c Commit, err error) {
	text, ok := string(raw), false
	if c.Tree, text, ok = HeaderLine(text, "tree "); !ok {
		return Commit{}, errors.New("it has no tree")
	}
	for {
		parent, rest, ok := HeaderLine(text, "parent ")
		if !ok {
			break
		}
		c.Parents, text = append(c.Parents, parent), rest
	}
	if !strings.HasPrefix(text, "author ") {
		return Commit{}, errors.New("it has no author")
	}
	return c, nil
}

// Committed reads when a commit was made, in seconds ("committer NAME <ADDRESS> SECONDS ZONE"), and what it says. ok is
// false, and the time 0, where it names no time.
func Committed(raw []byte) (seconds int64, message string, ok bool) {
	head, message, _ := strings.Cut(string(raw), "\n\n")
	_, rest, _ := strings.Cut(head, "\ncommitter ")
	line, _, _ := strings.Cut(rest, "\n")
	word, _, _ := strings.Cut(strings.TrimSpace(line[strings.LastIndexByte(line, '>')+1:]), " ")
	seconds, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return 0, message, false
	}
	return seconds, message, true
}

// HeaderLine reads a first line that is a key and the id of an object, and returns
// what follows it. Where the line is another one, ok is false.
func HeaderLine(text, key string) (id ID, rest string, ok bool) {
	line, rest, found := strings.Cut(text, "\n")
	hex, ok := strings.CutPrefix(line, key)
	if !found || !ok || !IsID(hex) {
		return id, text, false
	}
	return ParseID(hex), rest, true
}

// Who commits what this program makes.
const (
	OurName  = "countersign"
	OurEmail = "countersign@localhost"
	Us       = OurName + " <" + OurEmail + ">"
)

// EncodeCommit writes a commit. All of its times are UTC.
func EncodeCommit(c Commit, author, committer string, when time.Time, message string) []byte {
	return EncodeAuthored(c, author, when.UTC(), committer, when, message)
}

// EncodeAuthored writes a commit whose author has a time, and a zone, of their own.
func EncodeAuthored(c Commit, author string, authored time.Time, committer string, when time.Time, message string) []byte {
	text := append(make([]byte, 0, 256+len(message)), "tree "+c.Tree.String()...)
	for _, p := range c.Parents {
		text = append(text, "\nparent "+p.String()...)
	}
	text = append(append(append(text, "\nauthor "...), author...), ' ')
	text = strconv.AppendInt(text, max(authored.Unix(), 0), 10)
	text = append(append(append(authored.AppendFormat(text, " -0700"), "\ncommitter "...), committer...), ' ')
	text = strconv.AppendInt(text, max(when.Unix(), 0), 10)
	return append(append(text, " +0000\n\n"...), message...)
}
