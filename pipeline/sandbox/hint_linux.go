package sandbox

import (
	"os"
	"strings"
)

// unavailable is the error for a missing protection, with what to enable here.
func unavailable(missing string, err error) error {
	return &UnavailableError{Missing: []string{missing}, Hint: hint(missing, sysctl), Err: err}
}

// hint says what to enable, by what read gives for the kernel's settings.
func hint(missing string, read func(name string) string) string {
	switch missing {
	case landlockFiles:
		return "use Linux 5.13 or later with Landlock among the security modules (kernel parameter lsm=landlock,…); in a container, allow the landlock system calls"
	case landlockScopes:
		return "use Linux 6.12 or later, or run the command without the network"
	case userNamespaces:
		return namespaceHint(read)
	case noPrivileges:
		return "run as a normal user"
	}
	return "use Linux on amd64 or arm64 with seccomp filters"
}

func namespaceHint(read func(name string) string) string {
	switch {
	case read("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "enable them: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	case read("kernel/unprivileged_userns_clone") == "0":
		return "enable them: sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case read("user/max_user_namespaces") == "0":
		return "enable them: sudo sysctl -w user.max_user_namespaces=15000"
	}
	return "allow unprivileged user namespaces; in a container, allow clone, mount and pivot_root (seccomp and AppArmor profiles)"
}

func sysctl(name string) string {
	b, _ := os.ReadFile("/proc/sys/" + name)
	return strings.TrimSpace(string(b))
}
