package sandbox

import (
	"fmt"
	"slices"
	"strings"
)

// systemPath is PATH where the caller gives none.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// ownNames are set by the sandbox and cannot be passed from outside.
var ownNames = []string{"PATH", "HOME", "TMPDIR"}

// environment is the whole environment of a command: nothing comes from ours
// but the variables allowed by name that are set.
func environment(path, home, temp string, allowed []string, lookup func(string) (string, bool)) ([]string, error) {
	env := []string{"PATH=" + path, "HOME=" + home, "TMPDIR=" + temp}
	if !slices.Contains(allowed, "LANG") {
		env = append(env, "LANG=C.UTF-8")
	}
	for _, name := range allowed {
		if name == "" || strings.ContainsAny(name, "=\x00") || slices.Contains(ownNames, name) {
			return nil, fmt.Errorf("the variable %q cannot be passed to a command", name)
		}
		if lookup == nil {
			continue
		}
		if value, ok := lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env, nil
}
