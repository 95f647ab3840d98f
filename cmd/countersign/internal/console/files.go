package console

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// Habits finds out which flags Git's configuration may give a value.
func (c *Console) Habits(cmd *cobra.Command) error {
	c.Flags.Habitual = map[string]bool{}
	for _, flag := range []string{"ledger-ref", "remote", "forge", "sign-key"} {
		if !cmd.Flags().Changed(flag) && (flag != "sign-key" || c.Getenv(SignKeyName) == "") {
			c.Flags.Habitual[strings.ReplaceAll(flag, "-", "")] = true
		}
	}
	if err := c.CheckForge("--forge"); err != nil {
		return err
	}
	if !slices.Contains([]string{"auto", "always", "never"}, c.Flags.color) {
		return &UsageError{Message: fmt.Sprintf("--color %+q is not known", c.Flags.color), Hint: "--color auto, always or never"}
	}
	return nil
}

func (c *Console) InDir(err error) error {
	if _, statErr := os.Stat(c.From(c.Flags.Dir)); statErr != nil {
		return FileError(c.Flags.Dir, statErr)
	}
	abs, absErr := filepath.Abs(c.From(c.Flags.Dir))
	if absErr != nil {
		return err
	}
	return fmt.Errorf("%s: %w", abs, err)
}

// Path is where a file named on the command line is: below -C, if it is given.
func (c *Console) Path(name string) string {
	if dir := cmp.Or(c.Beside, c.Flags.Dir); !filepath.IsAbs(name) && dir != "." {
		name = filepath.Join(dir, name)
	}
	return c.From(name)
}

// From is where a path leads that begins in the directory where the run began. The system takes the steps
// up of that path, and not filepath.Join, as links may be on it.
func (c *Console) From(name string) string {
	if c.Dir == "" || filepath.IsAbs(name) || name != "" && os.IsPathSeparator(name[0]) {
		return name
	}
	return c.Dir + string(filepath.Separator) + name
}

// Own is the person's own directory for files of a kind, that a variable of the XDG Base Directory Specification names, else
// the usual one below their home; "" where neither is set.
func (c *Console) Own(variable, usual string) string {
	if dir := c.Getenv(variable); filepath.IsAbs(dir) {
		return filepath.Join(dir, "countersign")
	}
	if home := c.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, usual, "countersign")
	}
	return ""
}

// ReadInput reads a file, or stdin for "-", up to a limit.
func (c *Console) ReadInput(name string, limit int64) ([]byte, error) {
	in := c.Stdin
	if name != "-" {
		f, err := os.Open(c.Path(name))
		if err != nil {
			return nil, FileError(name, err)
		}
		defer f.Close()
		in = f
	}
	return ReadUpTo(in, name, limit)
}

func ReadUpTo(in io.Reader, name string, limit int64) ([]byte, error) {
	// One byte more than the limit is enough for the limit to be reported.
	raw, err := io.ReadAll(bufio.NewReader(io.LimitReader(in, limit+1)))
	if err != nil {
		return nil, FileError(name, err)
	}
	return raw, nil
}

// ReadFile reads a file that a flag names.
func (c *Console) ReadFile(name string) ([]byte, error) {
	raw, err := os.ReadFile(c.Path(name))
	if err != nil {
		return nil, FileError(name, err)
	}
	return raw, nil
}

// FileError is the error of a file that cannot be read or written.
func FileError(name string, err error) error {
	return &ExitError{Code: ExitIO, Err: fmt.Errorf("%s: %w", name, PlainText(err))}
}

// PlainText drops the operation and path from a file error; the caller names it.
func PlainText(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// ReadLimited reads a file that may have so many bytes. What is longer is cut off, and
// what a parser would say of it is beside the point.
func (c *Console) ReadLimited(name string, limit int64) ([]byte, error) {
	raw, err := c.ReadInput(name, limit)
	return Limited(raw, limit, err)
}

func Limited(raw []byte, limit int64, err error) ([]byte, error) {
	if have := int64(len(raw)); err == nil && have > limit {
		return nil, &pipeline.LimitError{What: "bytes", Have: have, Max: limit}
	}
	return raw, err
}

var fileToGive = canon.Regexp(`([0-9A-Z]{7}) --patch FILE\b`)

// withFile is a command line with the file that noteFile noted, as long as that is as it was.
func (c *Console) withFile(line string) string {
	return fileToGive().ReplaceAllStringFunc(line, func(found string) string {
		id, _, _ := strings.Cut(found, " ")
		repo, err := gitstore.Open(c.From(c.Flags.Dir))
		if err != nil {
			return found
		}
		defer repo.Close()
		noted, err := os.ReadFile(filepath.Join(repo.StateDir(), "files", id))
		sum, file, _ := strings.Cut(strings.TrimSuffix(string(noted), "\n"), "  ")
		if err != nil || !c.IsFile(file) {
			return found
		}
		if raw, err := os.ReadFile(file); err != nil || canon.Hex(raw) != sum {
			return found
		}
		return id + " --patch " + escape.ShellQuote(file)
	})
}

// IsFile reports whether a word of the command line names a file.
func (c *Console) IsFile(name string) bool {
	info, err := os.Stat(c.Path(name))
	return err == nil && info.Mode().IsRegular()
}

// FileNamed is the error of a file that is named where a command or a transaction is.
func (c *Console) FileNamed(name string) error {
	return &UsageError{Message: escape.Clean(name) + " is a file", Hint: c.Again("run", escape.ShellQuote(name))}
}

// IsDir reports whether a file is a directory.
func (c *Console) IsDir(name string) bool {
	info, err := os.Stat(c.Path(name))
	return err == nil && info.IsDir()
}

// InFile puts an input's name before an error that is about the input itself.
func InFile(name string, err error) error {
	several, holds := errors.AsType[*input.SeveralError](err)
	if holds {
		several.File = name
	}
	of := holds || As[*gitstore.BundleError](err) || As[*pipeline.LimitError](err) || As[*patch.Error](err)
	if name == "" || !of {
		return err
	}
	return fmt.Errorf("%s: %w", InputName(name), err)
}

// InputName is how a file named on the command line is called in a message.
func InputName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return escape.Clean(name)
}

var ageForm = canon.Regexp(`^([1-9][0-9]{0,3})([dw])$`)

// ReadWhen reads a day in UTC, a time of RFC 3339, or an age in days or weeks.
func (c *Console) ReadWhen(text string) (time.Time, bool) {
	if m := ageForm().FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		return c.Now().AddDate(0, 0, -n*map[string]int{"d": 1, "w": 7}[m[2]]), true
	}
	return readDay(text)
}

// readDay reads a day, which begins in UTC, or a time.
func readDay(text string) (time.Time, bool) {
	for _, form := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(form, text); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// WriteJSON writes a document into a file that somebody named.
func (c *Console) WriteJSON(name string, doc any) error {
	clean, err := c.RedactJSON(doc)
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.Path(name), []byte(clean.String()), 0o666); err != nil {
		return FileError(escape.Clean(name), err)
	}
	return nil
}

// WriteFiles writes files below a directory, which is made if it is not there. Their names may come from a ledger, so they are
// written through an os.Root.
func (c *Console) WriteFiles(dir string, files map[string][]byte) error {
	err := os.MkdirAll(c.Path(dir), 0o777)
	if err != nil {
		return FileError(escape.Clean(dir), err)
	}
	root, err := os.OpenRoot(c.Path(dir))
	if err != nil {
		return FileError(escape.Clean(dir), err)
	}
	defer root.Close()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err = root.MkdirAll(path.Dir(name), 0o777); err == nil {
			err = root.WriteFile(name, files[name], 0o666)
		}
		if err != nil {
			return FileError(escape.Clean(path.Join(dir, name)), err)
		}
	}
	return nil
}

// EmptyDir refuses a directory that has anything in it, which would stay there.
func (c *Console) EmptyDir(flag, name string) error {
	entries, err := os.ReadDir(c.Path(name))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return FileError(escape.Clean(name), err)
	case len(entries) > 0:
		return &UsageError{Message: escape.Clean(name) + " is not empty", Hint: "name a new directory with " + flag + " DIR"}
	}
	return nil
}
