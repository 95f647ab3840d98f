package sandbox

import (
	"os"
	"path/filepath"

	"github.com/landlock-lsm/go-landlock/landlock"
)

// landlockVersions are what go-landlock can enforce, by ABI from 1 on.
var landlockVersions = []landlock.Config{
	landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7, landlock.V8, landlock.V9,
	landlock.V10, landlock.V11,
}

// systemDirs hold the system's programs and libraries.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"}

// etc are the files below /etc that programs need to start, to name users and
// hosts, and to check certificates.
var etc = []string{
	"alternatives", "ca-certificates", "ca-certificates.conf", "debian_version", "gai.conf", "group", "host.conf", "hosts",
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "locale.alias", "localtime", "mime.types", "networks",
	"nsswitch.conf", "os-release", "passwd", "pki", "protocols", "resolv.conf", "services", "shells", "ssl", "static",
	"terminfo", "timezone",
}

// devices are the only ones there are.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// restrictFiles confines us and the command to the paths it needs. With no
// network at all it denies TCP as well, and it keeps signals and abstract
// sockets within, where the kernel can.
func (s *settings) restrictFiles() error {
	if !s.Walls {
		return nil
	}
	config := landlockVersions[s.Landlock-1]
	if s.Network || s.Loopback {
		config.HandledAccessNet = 0
	}
	return config.Restrict(s.fileRules()...)
}

func (s *settings) fileRules() []landlock.Rule {
	readable := append([]string{}, systemDirs...)
	readable = append(readable, s.Read...)
	for _, name := range etc {
		readable = append(readable, filepath.Join("/etc", name))
	}
	writable := []string{s.Dir, s.temp()}
	if s.Namespaces {
		readable = append(readable, "/proc")
	}
	write := landlock.RWDirs(writable...)
	if s.Landlock > 1 {
		write = write.WithRefer()
	}
	rules := []landlock.Rule{write, landlock.RWFiles(devices...).WithIoctlDev().IgnoreIfMissing()}
	return append(rules, readRules(readable)...)
}

// temp is the temporary directory as the command sees it.
func (s *settings) temp() string {
	if s.Namespaces {
		return "/tmp"
	}
	return s.Scratch
}

// readRules permits reading below each path. A rule for a file may not speak of directories.
func readRules(paths []string) []landlock.Rule {
	var dirs, files []string
	for _, path := range paths {
		switch info, err := os.Stat(path); {
		case err != nil:
		case info.IsDir():
			dirs = append(dirs, path)
		default:
			files = append(files, path)
		}
	}
	return []landlock.Rule{landlock.RODirs(dirs...), landlock.ROFiles(files...)}
}
