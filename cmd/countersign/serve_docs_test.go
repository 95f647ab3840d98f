package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The session in docs/rpc.md is what a server says.
func TestServeDocs(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/rpc.md")
	check(t, err)
	s := newServed(t, map[string]string{"a.go": "package a\n// TODO(bot): x\n"})
	s.start()
	lines := 0
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		if request, ok := strings.CutPrefix(line, "→ "); ok {
			_, err := fmt.Fprintln(s.in, strings.ReplaceAll(request, "/repo", s.repo))
			check(t, err)
		}
		want, ok := strings.CutPrefix(line, "← ")
		if !ok {
			continue
		}
		lines++
		got, err := s.out.ReadString('\n')
		check(t, err)
		got = strings.ReplaceAll(strings.TrimSuffix(got, "\n"), s.top(), "/repo")
		pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*") + "$"
		if !regexp.MustCompile(pattern).MatchString(got) {
			t.Fatalf("docs/rpc.md has\n%s\nthe server says\n%s", want, got)
		}
	}
	if s.in.Close(); lines < 20 {
		t.Errorf("only %d lines were compared", lines)
	}
	if rest, err := s.out.ReadString('\n'); err == nil {
		t.Errorf("docs/rpc.md leaves out %s", rest)
	}
}

// Every method is in docs/rpc.md, and no other.
func TestServeDocsMethods(t *testing.T) {
	raw, err := os.ReadFile("../../docs/rpc.md")
	check(t, err)
	var told []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z]+/[a-z]+) \|`).FindAllStringSubmatch(string(raw), -1) {
		told = append(told, row[1])
	}
	s := newServed(t, todoFiles)
	var have []string
	for _, name := range s.must("system/capabilities", obj{})["methods"].([]any) {
		have = append(have, name.(string))
	}
	slices.Sort(told)
	if !slices.Equal(told, have) {
		t.Errorf("docs/rpc.md has %v, the server %v", told, have)
	}
}
