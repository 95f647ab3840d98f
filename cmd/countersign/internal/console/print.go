package console

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// Say prints a remark for a person on stderr, in one line.
func (c *Console) Say(format string, args ...any) {
	if !c.Flags.Quiet {
		_ = Emit(c.Stderr, c.Redact("countersign: "+lookup.ShortIDs(escape.Clean(fmt.Sprintf(format, args...)))+"\n"))
	}
}

// Emit is the one place where the program writes to a person, or a log.
func Emit(w io.Writer, text secret.Redacted) error {
	_, err := io.WriteString(w, text.String())
	return err
}

// Redact takes secrets out of a text: those that the rules know by their form,
// and the tokens that this process was given.
func (c *Console) Redact(text string) secret.Redacted { return c.Finder().Redact(text) }

func (c *Console) Finder() *secret.Finder { return c.Known.finder() }

// Masks returns what reports whether a diff would not be shown as it is, as something in it looks like a secret. Several
// goroutines may call it.
func (c *Console) Masks() func(diff []byte) bool {
	finder := c.Finder()
	return func(diff []byte) bool { return finder.RedactDiff(diff).String() != string(diff) }
}

// A redactor knows the secrets that are taken out of everything that is printed: what the rules find, the tokens that this
// process was given, and what a command learnt of its patch. It only ever learns more.
type redactor struct {
	getenv  func(string) string
	heard   []string       // tokens that another program told
	Secrets *secret.Finder // nil until something is printed
}

func (k *redactor) finder() *secret.Finder {
	if k.Secrets == nil {
		k.Secrets = secret.Default().Knowing(k.Tokens()...)
	}
	return k.Secrets
}

// Tokens are what this process was given, and heard.
func (k *redactor) Tokens() []string {
	out := slices.Clone(k.heard)
	for _, name := range tokenNames {
		if v := k.getenv(name); v != "" {
			out = append(out, v)
		}
	}
	return out
}

// Hear adds a token that another program told.
func (k *redactor) Hear(token string) {
	k.heard = append(k.heard, token)
	k.Secrets = k.finder().Knowing(token)
}

// Ours is what a stage knows of secrets: there is one kind of Finder here.
func Ours(f redact.Finder) *secret.Finder { return f.(*secret.Finder) }

// Knowing is the console of a command beside others, which knows of secrets what is given and learns of its own. Who
// asked for it ends it.
func (c *Console) Knowing(secrets *secret.Finder) *Console {
	other := *c
	other.Known, other.AtEnd = &redactor{getenv: c.Getenv, Secrets: secrets}, nil
	return &other
}

// Learn takes over what a stage has learnt about secrets, before anything of it
// is printed.
func (c *Console) Learn(k pipeline.Known) {
	if k.Secrets != nil {
		c.Known.Secrets = Ours(k.Secrets).Also(c.Finder())
	}
}

// PrintJSON prints a document as canonical JSON. On a terminal, what does not
// show is written with JSON's own escapes (T71): the same document, in which
// nothing moves the cursor.
func (c *Console) PrintJSON(doc any) error {
	if c.Flags.fields != nil {
		var err error
		if doc, err = pick(doc, c.Flags.fields); err != nil {
			return err
		}
	}
	line, err := c.RedactJSON(doc)
	if err != nil {
		return err
	}
	if IsTerminal(c.Stdout) {
		line = line.Show(escape.JSON)
	}
	return Emit(c.Stdout, line)
}

// pick is a document with those of its members alone that are named or, where not all of them are
// its own and it has one list, that list with its elements so. What can be there and is not is left out.
func pick(doc any, names []string) (any, error) {
	raw, err := canon.Marshal(doc)
	if err != nil {
		return nil, err
	}
	parsed, err := canon.Parse(raw)
	whole, _ := parsed.(Document)
	known, inner, elements := Document{}, Document{}, []any{}
	maps.Copy(known, whole)
	if t := reflect.TypeOf(doc); t.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(t) {
			if f.Tag.Get("json") == "-" {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			known[name] = nil
		}
	}
	lists := slices.DeleteFunc(slices.Sorted(maps.Keys(whole)), func(name string) bool { _, is := whole[name].([]any); return !is })
	if len(lists) == 1 {
		elements = whole[lists[0]].([]any)
	}
	for _, e := range elements {
		e, _ := e.(Document)
		maps.Copy(inner, e)
	}
	lacks := func(known Document) bool {
		return slices.ContainsFunc(names, func(name string) bool { _, is := known[name]; return !is })
	}
	only := func(of any) Document {
		kept, _ := of.(Document)
		maps.DeleteFunc(kept, func(name string, _ any) bool { return !slices.Contains(names, name) })
		return kept
	}
	switch {
	case err != nil:
		return nil, err
	case !lacks(known):
		return only(whole), nil
	case len(lists) == 1 && (len(elements) == 0 || !lacks(inner)): // of an empty list nobody knows
		for i, e := range elements {
			elements[i] = only(e)
		}
		return Document{lists[0]: elements}, nil
	}
	has := strings.Join(slices.Sorted(maps.Keys(known)), ", ")
	if len(inner) > 0 {
		has += "; each of its " + lists[0] + ": " + strings.Join(slices.Sorted(maps.Keys(inner)), ", ")
	}
	return nil, &UsageError{Message: fmt.Sprintf("--json=%s: not all of these are members of the document", strings.Join(names, ",")), Hint: "the document has " + has}
}

// RedactJSON is a document's canonical JSON and one LF. Its strings are looked
// at one by one, so that it stays a document, and its hashes stay hashes.
func (c *Console) RedactJSON(doc any) (secret.Redacted, error) {
	raw, err := canon.Marshal(doc)
	if err != nil {
		return secret.Redacted{}, err
	}
	clean, err := c.Finder().RedactJSON(raw, func(key, value string) bool {
		return key == writing.DiffKey || key == writing.DiffBytesKey || writing.IsTyped(key, value)
	})
	return clean.Show(func(doc string) string { return doc + "\n" }), err
}

func (c *Console) Print(text string) error { return Emit(c.Stdout, c.Redact(text)) }

// GiveBack prints what was given as it is, so that it still hashes to what it did.
func (c *Console) GiveBack(text string) error {
	_, err := io.WriteString(c.Stdout, text)
	return err
}

// A Document is JSON to be.
type Document = map[string]any

// Result prints what a command came to: the document with --json, else the text.
func (c *Console) Result(doc any, text string) error {
	if c.Flags.JSON {
		return c.PrintJSON(doc)
	}
	return c.Print(text)
}

// Colourful says whether stdout has colours.
func (c *Console) Colourful() bool { return c.Colours(c.Stdout) }

// Colours says whether there are colours: on a terminal where NO_COLOR is not set
// (no-color.org), or as --color says.
func (c *Console) Colours(w io.Writer) bool {
	if c.Flags.color == "always" || c.Flags.color == "never" {
		return c.Flags.color == "always"
	}
	return IsTerminal(w) && c.Getenv("NO_COLOR") == "" && c.Getenv("TERM") != "dumb"
}

// Person returns where to ask a person a question: stderr, or the terminal
// itself when stderr goes elsewhere. nil means that nobody is there. The caller
// closes it.
func (c *Console) Person() io.WriteCloser {
	if c.Flags.JSON || !IsTerminal(c.Stdin) {
		return nil
	}
	if IsTerminal(c.Stderr) {
		return Borrowed{Writer: c.Stderr}
	}
	tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	if err != nil {
		return nil
	}
	return tty
}

// Somebody reports whether there is a person to ask.
func (c *Console) Somebody() bool {
	person := c.Person()
	if person == nil {
		return false
	}
	return person.Close() == nil
}

// Page shows a text to the person through their pager, or as it is where there is
// none or it fails. The pager is COUNTERSIGN_PAGER, countersign.pager, or the one that
// git would take: GIT_PAGER, core.pager, PAGER, less; but never one that the
// repository's own configuration names (T84). It returns how many lines were seen at most.
func (c *Console) Page(settings gitstore.Settings, person io.Writer, text secret.Redacted) (seen int, err error) {
	pager := strings.TrimSpace(cmp.Or(c.Getenv("COUNTERSIGN_PAGER"), settings.OwnPager, c.Getenv("GIT_PAGER"), settings.Pager, c.Getenv("PAGER"), "less"))
	dumb := c.Getenv("TERM") == "" || c.Getenv("TERM") == "dumb"
	if c.Flags.noPager || !IsTerminal(person) || dumb || pager == "" || pager == "cat" {
		return strings.Count(text.String(), "\n"), Emit(person, text)
	}
	if seen, err = Page(text.String(), pager, person, c.Getenv); err != nil {
		c.Say("the pager %q failed: %s", pager, OneLine(err))
		return strings.Count(text.String(), "\n"), Emit(person, text)
	}
	return seen, nil
}

func (c *Console) LongWith(settings gitstore.Settings, text secret.Redacted) error {
	if _, rows := Size(c.Stdout); IsTerminal(c.Stdout) && strings.Count(text.String(), "\n") >= rows {
		_, err := c.Page(settings, c.Stdout, text)
		return err
	}
	return Emit(c.Stdout, text)
}

// Columns are those of the terminal; what is no terminal has room for any line.
func (c *Console) Columns() int {
	if !IsTerminal(c.Stdout) {
		return math.MaxInt16
	}
	columns, _ := Size(c.Stdout)
	return columns
}

// Cleanly is a document without secrets: its line of JSON, and what that says.
func Cleanly[T any](c *Console, doc T) (line secret.Redacted, clean T, err error) {
	if line, err = c.RedactJSON(doc); err == nil {
		err = json.Unmarshal([]byte(line.String()), &clean)
	}
	return line, clean, err
}

// watch shows on a terminal that a command is at work while it prints nothing. Commands that
// talk with a program, and those that another command runs, have no line of their own.
func (c *Console) watch(cmd *cobra.Command) {
	silent := c.Flags.JSON || c.Flags.Quiet || cmd.Hidden || cmd.Name() == "serve" || cmd.Name() == "mcp" || c.Getenv("TERM") == "dumb"
	if silent || !IsTerminal(c.Stderr) || Watched(c.Stderr) {
		return
	}
	c.Line = Begin(cmd.Name(), c.Stderr, c.Now)
	c.Stdout, c.Stderr = c.Line.Over(c.Stdout), c.Line.Over(c.Stderr)
}

// ErrNotAsked says that nobody could be asked here.
var ErrNotAsked = errors.New("there is nobody to ask here")

// Answer asks one question, and reads the line that is typed after it.
func (c *Console) Answer(person io.Writer, question string) (string, error) {
	return c.ask(person, question, func(in *os.File) (string, error) { return bufio.NewReader(in).ReadString('\n') })
}

// Key asks one question, once no key is pressed any more, which the next key answers; where none can be read alone, it is Answer.
func (c *Console) Key(person io.Writer, question string) (string, error) {
	defer c.Line.Hold()()
	if !Quiet(c.Stdin.(*os.File)) {
		return c.Answer(person, question)
	}
	key, err := c.ask(person, question, Key)
	return key, errors.Join(err, Emit(person, c.Redact(strings.TrimSpace(escape.Clean(key))+"\n")))
}

// ask asks a question, and reads what is typed after it.
func (c *Console) ask(person io.Writer, question string, read func(*os.File) (string, error)) (string, error) {
	empty := c.EmptyInput
	if empty == nil {
		empty = EmptyInput
	}
	if err := empty(c.Stdin.(*os.File)); err != nil {
		c.Say("not asked: earlier typing cannot be told from an answer: %s", OneLine(err))
		return "", ErrNotAsked
	}
	defer c.Line.Hold()()
	if err := Emit(person, c.Redact(question)); err != nil {
		return "", err
	}
	return read(c.Stdin.(*os.File))
}

// Agrees asks a question that y or yes agrees to, and nothing else does.
func (c *Console) Agrees(person io.Writer, question string) bool {
	typed, err := c.Answer(person, question)
	word := strings.ToLower(strings.TrimSpace(typed))
	return err == nil && (word == "y" || word == "yes")
}

// Teller says what a program says that works for this one.
func (c *Console) Teller() io.Writer { return teller{c} }

type teller struct{ a *Console }

func (t teller) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		t.a.Say("%s", strings.TrimSpace(line))
	}
	return len(p), nil
}

// OpenBrowser opens an address in the person's browser.
func (c *Console) OpenBrowser(address string) error {
	browser := c.Getenv("BROWSER")
	if c.GH != nil {
		browser = cmp.Or(c.Getenv("GH_BROWSER"), browser)
	}
	return Browse(address, browser, c.Getenv)
}

// RedactDiff is a stored diff as it is shown. It was stored without secrets, so
// that this changes nothing; where it does, as the rules are others by now, the
// person is told.
func (c *Console) RedactDiff(diff []byte) secret.Redacted {
	shown := c.Finder().RedactDiff(diff)
	if shown.String() != string(diff) {
		c.Say("the diff is shown without what looks like a secret: these are not the bytes that the approval is about")
	}
	return shown
}
