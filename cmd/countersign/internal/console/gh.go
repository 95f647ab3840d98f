package console

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// IsExtension reports whether a program of this name is the one that gh runs.
func IsExtension(program string) bool {
	return strings.TrimSuffix(strings.ToLower(filepath.Base(program)), ".exe") == "gh-countersign"
}

// A Keeper asks the gh of a PATH, once for each host, for the token of that one: never for one from the environment, which gh
// gives for any. A nil one has no token.
type Keeper struct {
	Path   string
	tokens map[string]string
}

// Token returns the token for a host, "" where gh has none, or there is no gh. One inside
// the repository that a directory or this process is in is none.
func (k *Keeper) Token(host, directory string) string {
	if k == nil {
		return ""
	}
	token, asked := k.tokens[host]
	if !asked {
		if k.tokens == nil {
			k.tokens = map[string]string{}
		}
		token = askGH(context.Background(), k.Path, host, directory)
		k.tokens[host] = token
	}
	return token
}

var (
	hostForm  = canon.Regexp(`^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?$`)
	tokenForm = canon.Regexp(`^[!-~]{1,1000}$`)
)

func askGH(ctx context.Context, path, host, directory string) string {
	if !hostForm().MatchString(host) {
		return ""
	}
	program := findGH(path, repositoriesOf(".", directory))
	if program == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "auth", "token", "--hostname="+host)
	cmd.Dir = os.TempDir()
	cmd.Env = slices.DeleteFunc(cmd.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "GITHUB_") || slices.Contains([]string{"GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GH_HOST", "GH_DEBUG"}, name)
	})
	said, err := cmd.Output() // what gh says on stderr is not for a log
	if token := strings.TrimSpace(string(said)); err == nil && tokenForm().MatchString(token) {
		return token
	}
	return ""
}

// findGH is the first gh in a PATH that is in none of the folders, "" for none.
func findGH(path string, folders []string) string {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		program, err := exec.LookPath(filepath.Join(dir, "gh"))
		if err != nil {
			continue
		}
		real, err := filepath.EvalSymlinks(program)
		if err == nil && !slices.ContainsFunc(folders, func(f string) bool { return within(f, program) || within(f, real) }) {
			return program
		}
	}
	return ""
}

// repositoriesOf are the folders with .git that directories are in, as they are named and
// where links lead. A directory in no repository is none.
func repositoriesOf(directories ...string) (folders []string) {
	for _, directory := range directories {
		abs, err := filepath.Abs(directory)
		if err != nil {
			continue
		}
		real, err := filepath.EvalSymlinks(abs)
		if err != nil {
			real = abs
		}
		for _, dir := range []string{abs, real} {
			for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
				if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
					folders = append(folders, dir)
				}
			}
		}
	}
	return folders
}

func within(folder, file string) bool {
	inside, err := filepath.Rel(folder, file)
	return err != nil || inside != ".." && !strings.HasPrefix(inside, ".."+string(filepath.Separator))
}
