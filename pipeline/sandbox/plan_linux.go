package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// Names of protections, as an UnavailableError lists them.
const (
	userNamespaces = "user namespaces"
	landlockFiles  = "Landlock"
	landlockScopes = "Landlock scopes (ABI 6)"
	systemCalls    = "the seccomp filter"
	noPrivileges   = "an unprivileged user id"
	resourceLimits = "resource limits"
)

// scopesABI is the first Landlock that keeps signals and abstract sockets in.
const scopesABI = 6

// plans are the ways to run the job, the strongest first.
func (j *job) plans() ([]plan, error) {
	if j.sandbox.Mode == DangerFullAccess {
		return []plan{{protection: Protection{Mode: string(DangerFullAccess), Namespaces: []string{}}, user: -1}}, nil
	}
	abi := landlockABI()
	if j.stdio == nil {
		return walls(abi, unprivileged(), os.Geteuid() == 0, j.command, j.sandbox.AcceptSeccomp)
	}
	plans, err := walls(abi, -1, os.Geteuid() == 0, j.command, false)
	if err == nil && abi < scopesABI {
		err = unavailable(landlockScopes, nil)
	}
	return plans, err
}

// walls decides what can be built. user is the id to run as, or -1.
func walls(abi, user int, root bool, c Command, acceptSeccomp bool) ([]plan, error) {
	switch {
	case filterArch == 0:
		return nil, unavailable(systemCalls, nil)
	case abi == 0:
		return nil, unavailable(landlockFiles, nil)
	case c.Network && abi < scopesABI:
		return nil, unavailable(landlockScopes, nil)
	}
	p := Protection{Mode: string(WorkspaceWrite), Landlock: abi, Seccomp: true}
	strong, weak := p, p
	strong.Namespaces = []string{"user", "mnt", "pid", "ipc", "uts"}
	if !c.Network {
		strong.Namespaces = append(strong.Namespaces, "net")
	}
	plans := []plan{{protection: strong, namespaces: true, user: user}}
	// Without namespaces only Landlock keeps signals in, and nothing makes a loopback.
	if acceptSeccomp && abi >= scopesABI && !c.Loopback && (user >= 0 || !root) {
		weak.Namespaces, weak.NetworkFilter = []string{}, !c.Network
		plans = append(plans, plan{protection: weak, user: user})
	}
	return plans, nil
}

// landlockABI is the kernel's Landlock version as go-landlock counts it, 0 for none.
func landlockABI() int {
	v, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	if v < scopesABI {
		return v
	}
	// Without the fix of erratum 2 the signal scope is broken, and go-landlock does not use it.
	if errata, err := ll.LandlockGetErrata(); err != nil || errata&2 == 0 {
		return scopesABI - 1
	}
	return min(v, len(landlockVersions))
}

// unavailable is the error for a missing protection, with what to enable here.
func unavailable(missing string, err error) error {
	return &UnavailableError{Missing: []string{missing}, Try: hint(missing, sysctl), Err: err}
}

// hint says what to enable, by what read gives for the kernel's settings.
func hint(missing string, read func(name string) string) string {
	switch missing {
	case landlockFiles:
		return "use Linux 5.13 or later with Landlock among the security modules (kernel parameter lsm=landlock,…); in a container, allow the landlock system calls"
	case landlockScopes:
		return "use Linux 6.12 or later, or run the command without the network"
	case userNamespaces:
		switch {
		case read("kernel/apparmor_restrict_unprivileged_userns") == "1":
			return "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
		case read("kernel/unprivileged_userns_clone") == "0":
			return "sudo sysctl -w kernel.unprivileged_userns_clone=1"
		case read("user/max_user_namespaces") == "0":
			return "sudo sysctl -w user.max_user_namespaces=15000"
		}
		return "allow unprivileged user namespaces; in a container, allow clone, mount and pivot_root (seccomp and AppArmor profiles)"
	case noPrivileges:
		return "run as a normal user"
	}
	return "use Linux on amd64 or arm64 with seccomp filters"
}

func sysctl(name string) string {
	b, _ := os.ReadFile("/proc/sys/" + name)
	return strings.TrimSpace(string(b))
}

// handOver gives the directory and the scratch to the command's user. A file with
// a hard link outside is refused: writing to it would write there.
func (j *job) handOver(p plan) error {
	if j.sandbox.Mode == DangerFullAccess {
		return nil
	}
	if err := j.reachable(p); err != nil {
		return err
	}
	for _, dir := range []string{j.scratch, j.dir} {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		err = claim(root, p.user)
		_ = root.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// reachable checks that without namespaces the command's user can come to the
// directories at all: those above must let everybody pass.
func (j *job) reachable(p plan) error {
	if p.namespaces || p.user < 0 {
		return nil
	}
	for _, dir := range []string{j.scratch, j.dir} {
		for above := filepath.Dir(dir); ; above = filepath.Dir(above) {
			info, err := os.Stat(above)
			if err != nil {
				return err
			}
			if info.Mode()&0o001 == 0 {
				return fmt.Errorf("user %d cannot reach %s: %s does not let other users pass", p.user, dir, above)
			}
			if above == filepath.Dir(above) {
				break
			}
		}
	}
	return nil
}

// claim checks every file below root, then gives it to user unless that is -1.
func claim(root *os.Root, user int) error {
	type inode struct{ device, number uint64 }
	type linked struct {
		name    string // one of those met
		missing uint64 // how many were not
	}
	links := map[inode]*linked{} // files with several names
	var foreign []string
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		if !d.IsDir() && st.Nlink > 1 {
			id := inode{uint64(st.Dev), st.Ino}
			if links[id] == nil {
				links[id] = &linked{name: name, missing: uint64(st.Nlink)}
			}
			links[id].missing--
		}
		if user >= 0 && int(st.Uid) != user {
			foreign = append(foreign, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, l := range links {
		if l.missing > 0 {
			return fmt.Errorf("%s has a hard link outside", l.name)
		}
	}
	for _, name := range foreign {
		if err := root.Lchown(name, user, user); err != nil {
			return err
		}
	}
	return nil
}
