package sandbox

import (
	"os"

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
	return walls(landlockABI(), unprivileged(), os.Geteuid() == 0, j.command, j.sandbox.AcceptSeccomp)
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
