package sandbox

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// What is built for each kernel: "strong" is with namespaces, "weak" without.
func TestPlans(t *testing.T) {
	network, loopback := Command{Network: true}, Command{Loopback: true}
	for _, c := range []struct {
		name    string
		abi     int
		user    int
		root    bool
		command Command
		accept  bool
		want    string // plans, or what is missing
	}{
		{"all there", 7, -1, false, Command{}, false, "strong"},
		{"the weaker one accepted", 7, -1, false, Command{}, true, "strong weak"},
		{"root that can become another", 7, nobody, true, Command{}, true, "strong weak"},
		{"root that cannot", 7, -1, true, Command{}, true, "strong"},
		{"no Landlock", 0, -1, false, Command{}, true, landlockFiles},
		{"no scopes", 5, -1, false, Command{}, true, "strong"},
		{"no scopes, with the network", 5, -1, false, network, true, landlockScopes},
		{"the network", 6, -1, false, network, true, "strong weak"},
		{"a loopback", 6, -1, false, loopback, true, "strong"},
	} {
		plans, err := walls(c.abi, c.user, c.root, c.command, c.accept)
		var got []string
		for _, p := range plans {
			got = append(got, map[bool]string{true: "strong", false: "weak"}[p.namespaces])
			if p.protection.NetworkFilter != (!p.namespaces && !c.command.Network) ||
				slices.Contains(p.protection.Namespaces, "net") != (p.namespaces && !c.command.Network) {
				t.Errorf("%s: %+v", c.name, p)
			}
		}
		if missing := (*UnavailableError)(nil); errors.As(err, &missing) {
			got = missing.Missing
			if missing.Try == "" {
				t.Errorf("%s: no hint", c.name)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestHints(t *testing.T) {
	for _, c := range []struct{ missing, setting, value, want string }{
		{userNamespaces, "kernel/apparmor_restrict_unprivileged_userns", "1", "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
		{userNamespaces, "kernel/unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
		{userNamespaces, "user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=15000"},
		{userNamespaces, "", "", "in a container"},
		{landlockFiles, "", "", "Linux 5.13"},
		{landlockScopes, "", "", "Linux 6.12"},
		{noPrivileges, "", "", "normal user"},
		{systemCalls, "", "", "seccomp"},
	} {
		got := hint(c.missing, func(name string) string {
			if name == c.setting {
				return c.value
			}
			return ""
		})
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", c.missing, got)
		}
	}
}

// The jumps of a filter are 8 bits, and a filter is at most 4096 instructions.
func TestFilterIsSmall(t *testing.T) {
	for _, namespaces := range []bool{false, true} {
		for _, network := range []bool{false, true} {
			if f := filter(namespaces, network); len(f) > 4096 || len(f) < 2*len(denied) {
				t.Errorf("%d instructions", len(f))
			}
		}
	}
}
