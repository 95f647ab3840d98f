// Package checks runs commands on a copy of a tree and carries what came of
// them to where it counts. That may be another machine: commands run where
// there is nothing to steal, in a job without rights, and its Results are
// untrusted data for the job that has them.
//
// # The format countersign/results/1
//
// One canonical JSON object (RFC 8785) and an LF, at most 8 MiB in all. No key
// may be missing but signal, and none be added:
//
//	schema         "countersign/results/1"
//	tree           the Git tree that the commands ran on, 40 hex digits, or 64
//	policy_sha256  the Policy that names them: "sha256:" and 64 hex digits
//	executions     at most 1000 objects, of which no two have the same argv and shell:
//	  argv           1 to 1000 words, 64 KiB in all
//	  shell          whether sh was given argv's first word as a script
//	  required       whether its failure stops the change
//	  exit_code      0 to 255; -1 where the command could not be run
//	  signal         what ended it, such as "killed"; left out where nothing did
//	  timed_out      whether that was for its time
//	  duration_ms    milliseconds
//	  stdout, stderr         at most 64 KiB of text each; of more, the beginning and the end
//	                         are kept, and a line "… 123 bytes cut …" stands between
//	  stdout_bytes, stderr_bytes  bytes printed in all
//	  error          why it could not be run, else ""
//	  protection     what the sandbox had in force: mode, landlock (the ABI's version, 0 for
//	                 none), namespaces, seccomp, network_filter
//
// Such as, in one line:
//
//	{"executions":[{"argv":["go","vet","./..."],"duration_ms":812,"error":"","exit_code":0,
//	"protection":{"landlock":5,"mode":"workspace-write","namespaces":["user","mnt","pid","net"],
//	"network_filter":false,"seccomp":true},"required":true,"shell":false,
//	"stderr":"","stderr_bytes":0,"stdout":"","stdout_bytes":0,"timed_out":false}],
//	"policy_sha256":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
//	"schema":"countersign/results/1","tree":"4b825dc642cb6eb9a060e54bf8d69288fbee4904"}
package checks

import (
	"slices"
	"strings"
	"unicode"

	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// Allowed returns the Policy's entry for what a Proposal asks to run, which is
// one line of text. The line is never taken apart: it must be an entry's words
// with single spaces between them, or a shell entry's script, to the byte. An
// entry with an empty word, or one that holds a space or a quote, has no such
// line, since another entry could have the same.
func Allowed(p policy.Policy, line string) (policy.Command, bool) {
	needsQuotes := func(word string) bool {
		return word == "" || strings.ContainsAny(word, `"'`+"`\\") || strings.ContainsFunc(word, func(r rune) bool {
			return unicode.IsSpace(r) || unicode.IsControl(r)
		})
	}
	for _, c := range p.Commands.Allow {
		if !c.Shell && len(c.Argv) > 0 && !slices.ContainsFunc(c.Argv, needsQuotes) && strings.Join(c.Argv, " ") == line {
			return c, true
		}
	}
	for _, c := range p.Commands.Allow {
		if c.Shell && len(c.Argv) == 1 && line != "" && c.Argv[0] == line {
			return c, true
		}
	}
	return policy.Command{}, false
}
