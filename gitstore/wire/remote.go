package wire

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// ErrScheme is a URL of a kind that is not spoken.
var ErrScheme = errors.New("only https, http, ssh, file and paths are supported")

// A Remote is where a repository is. It prints without user and password.
type Remote struct {
	scheme string // https, http, ssh or file
	user   *url.Userinfo
	host   string // without brackets; "" for file
	port   int    // 0 for the scheme's own
	path   string // http: escaped; ssh: as the server's shell gets it; file: of this system
}

var (
	hasScheme = canon.Regexp(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	hasHelper = canon.Regexp(`^[A-Za-z0-9+.-]*::`)
	hasDrive  = canon.Regexp(`^[A-Za-z]:[\\/]`)
	hostName  = canon.Regexp(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	userName  = canon.Regexp(`^[\pL\pN_]([\pL\pN_.@+=\\-]*[\pL\pN_.+=-])?$`)
	scpLike   = canon.Regexp(`^(?:([^@:/\[\]]+)@)?(\[[0-9A-Fa-f:.]+\]|[^@:/\[\]]+):([^:@]+)$`)
)

// ParseRemote reads what stands in a remote's configuration: a URL, HOST:PATH
// with an optional user, or a path, which is taken relative to dir; with dir
// empty it must be absolute. Its errors do not repeat the URL, which may hold a
// password.
func ParseRemote(raw, dir string) (Remote, error) {
	beforeSlash, _, _ := strings.Cut(raw, "/")
	switch {
	case raw == "":
		return Remote{}, errors.New("the URL is empty")
	case strings.ContainsFunc(raw, isControl):
		return Remote{}, errors.New("the URL has control characters")
	case strings.HasPrefix(raw, "-"):
		return Remote{}, errors.New("the URL begins with a dash")
	case hasHelper().MatchString(raw):
		return Remote{}, fmt.Errorf("a URL with a remote helper (%s): %w", raw[:strings.Index(raw, "::")+2], ErrScheme)
	case hasScheme().MatchString(raw):
		return parseURL(raw)
	case strings.Contains(beforeSlash, ":") && !(runtime.GOOS == "windows" && hasDrive().MatchString(raw)):
		return parseSCP(raw)
	}
	return localPath(raw, dir)
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func localPath(raw, dir string) (Remote, error) {
	path := filepath.FromSlash(raw)
	if !filepath.IsAbs(path) {
		if !filepath.IsAbs(dir) {
			return Remote{}, errors.New("the path of the repository is relative, and it is not clear to which directory")
		}
		path = filepath.Join(dir, path)
	}
	return Remote{scheme: "file", path: filepath.Clean(path)}, nil
}

func parseURL(raw string) (Remote, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return Remote{}, errors.New("the URL cannot be read")
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return Remote{}, errors.New("the URL has a query or a fragment")
	}
	r := Remote{scheme: u.Scheme, user: u.User, host: u.Hostname()}
	if err := r.checkHost(); err != nil && u.Scheme != "file" {
		return Remote{}, err
	}
	if port := u.Port(); port != "" {
		if r.port, err = strconv.Atoi(port); err != nil || r.port < 1 || r.port > 65535 {
			return Remote{}, errors.New("the URL's port is not valid")
		}
	}
	switch u.Scheme {
	case "https", "http":
		r.path = strings.TrimRight(u.EscapedPath(), "/")
	case "ssh":
		if err := r.checkUser(); err != nil {
			return Remote{}, err
		}
		r.path = u.Path
		if strings.HasPrefix(r.path, "/~") { // git, too, sends it without the slash
			r.path = r.path[1:]
		}
	case "file":
		if u.Host != "" && u.Host != "localhost" || u.User != nil {
			return Remote{}, errors.New("a file URL that names another host")
		}
		path := u.Path
		if runtime.GOOS == "windows" && strings.HasPrefix(path, "/") && hasDrive().MatchString(path[1:]) {
			path = path[1:]
		}
		if strings.ContainsFunc(path, isControl) {
			return Remote{}, errors.New("the URL's path has control characters")
		}
		return localPath(path, "")
	default:
		return Remote{}, fmt.Errorf("a URL that begins with %q: %w", u.Scheme+":", ErrScheme)
	}
	return r, r.checkPath()
}

func parseSCP(raw string) (Remote, error) {
	m := scpLike().FindStringSubmatch(raw)
	if m == nil {
		return Remote{}, errors.New("the address is neither a URL, nor HOST:PATH, nor a path")
	}
	r := Remote{scheme: "ssh", host: strings.Trim(m[2], "[]"), path: m[3]}
	if m[1] != "" {
		r.user = url.User(m[1])
		if err := r.checkUser(); err != nil {
			return Remote{}, err
		}
	}
	switch strings.ToLower(r.host) {
	case "http", "https", "ssh", "git", "file", "ftp", "ftps": // "https:/user:password@host" is no host called https
		return Remote{}, errors.New("the URL lacks a slash")
	}
	if err := r.checkHost(); err != nil {
		return Remote{}, err
	}
	return r, r.checkPath()
}

func (r Remote) checkHost() error {
	if r.host == "" {
		return errors.New("the URL names no host")
	}
	if addr, err := netip.ParseAddr(r.host); (err != nil || addr.Zone() != "") && !hostName().MatchString(r.host) {
		return errors.New("the URL's host is not valid")
	}
	return nil
}

// checkUser keeps away from ssh what it could take for an option, and from the
// commands of ssh_config, which may name the user (%r), what a shell would run.
func (r Remote) checkUser() error {
	if name := r.user.Username(); name != "" && !userName().MatchString(name) {
		return errors.New("the URL's user is not valid")
	}
	return nil
}

func (r Remote) checkPath() error {
	switch {
	case strings.Trim(r.path, "/") == "":
		return errors.New("the URL names no repository")
	case strings.HasPrefix(r.path, "-"):
		return errors.New("the repository's path begins with a dash")
	case strings.ContainsFunc(r.path, isControl):
		return errors.New("the URL's path has control characters")
	}
	return nil
}

// Redacted is the URL without user and password, to print.
func (r Remote) Redacted() string {
	switch {
	case r.scheme == "":
		return ""
	case r.scheme == "file":
		return r.path
	case strings.HasPrefix(r.path, "/"):
		return r.scheme + "://" + r.hostPort() + r.path
	}
	return r.scheme + "://" + r.hostPort() + "/" + r.path
}

// String is Redacted.
func (r Remote) String() string { return r.Redacted() }

// GoString is Redacted, so that not even %#v prints a password.
func (r Remote) GoString() string { return r.Redacted() }

func (r Remote) hostPort() string {
	host := r.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if r.port == 0 {
		return host
	}
	return host + ":" + strconv.Itoa(r.port)
}

// dialPort is the port that is dialled.
func (r Remote) dialPort() int {
	switch {
	case r.port != 0:
		return r.port
	case r.scheme == "https":
		return 443
	case r.scheme == "http":
		return 80
	}
	return 22
}

// isLoopback reports whether host is this machine.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// Sibling is the address of another repository, OWNER/NAME, on the server that an address names: its
// last two parts are replaced, and all else stays as it is, user and password too. It is an error if the address
// is a path or has no two parts.
func Sibling(address, repository string) (string, error) {
	r, err := ParseRemote(address, string(filepath.Separator))
	if err != nil {
		return "", err
	}
	if r.scheme == "file" {
		return "", errors.New("it is a path, which has no repository beside it")
	}
	start := strings.LastIndex(address, ":") + 1 // HOST:PATH
	if scheme := hasScheme().FindString(address); scheme != "" {
		start = len(scheme) + strings.Index(address[len(scheme):], "/") + 1
	}
	path := strings.TrimRight(address[start:], "/")
	suffix := ""
	if strings.HasSuffix(path, ".git") {
		suffix = ".git"
	}
	name := strings.LastIndex(path, "/")
	if name < 1 {
		return "", errors.New("its path has no owner and name")
	}
	owner := strings.LastIndex(path[:name], "/") + 1
	if owner == name || name == len(path)-len(suffix)-1 {
		return "", errors.New("its path has no owner and name")
	}
	return address[:start] + path[:owner] + repository + suffix, nil
}

// WebOf is the https address of the server that an address over ssh names; any
// other address is returned as it is.
func WebOf(address string) string {
	r, err := ParseRemote(address, "")
	if err != nil || r.scheme != "ssh" {
		return address
	}
	r.port = 0
	return "https://" + r.hostPort()
}
