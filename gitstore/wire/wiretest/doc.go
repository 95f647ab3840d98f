// Package wiretest is the other side of package wire, for tests: real bare
// repositories behind git http-backend and behind an ssh server, both on
// 127.0.0.1, that fail on demand. It needs git.
package wiretest
