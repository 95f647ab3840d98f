package main

import (
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

var (
	adasKey  = teststand.Ed25519(1)
	evesKey  = teststand.Ed25519(3)
	signOnly = "version: 1\napprovals: {keys: keys, signed: require}\nprotected: [{paths: [c.txt], required: 1}]\n"
)

// signedServed is a server of somebody whose Policy asks for signatures, with a change that
// waits for two approvals: req_1 of the change, req_2 of a protected path.
func signedServed(t *testing.T) (s *served, id string, statement approval.SignedDecision) {
	s = newServed(t, map[string]string{
		"c.txt": "c\n", ".github/countersign.yml": signOnly, "keys": "ada@localhost " + adasKey.Public + "\nbob@localhost " + teststand.Ed25519(2).Public + "\n",
	})
	id = s.turn(obj{"threadId": s.thread(), "input": "see", "patch": seePatch})
	if got := s.apply(id)["pendingApprovals"].([]any); len(got) != 2 {
		t.Fatalf("it asks for %v", got)
	}
	return s, id, s.statement(id, ledger.Approve)
}

// statement is what somebody signs who decides on all that a transaction asks about.
func (s *served) statement(id string, decision ledger.Decision) approval.SignedDecision {
	s.t.Helper()
	_, statement, err := aboutToSign(s.repo, func(name string) string {
		return map[string]string{"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.DevNull, "HOME": s.dir}[name]
	}, id, decision)
	check(s.t, err)
	statement.DecidedAt = "2026-01-05T12:00:00Z" // the server's time
	return statement
}

// T73: a client hands over what a person signed with their key, and nothing else is an
// approval where the Policy demands that: not a call without a signature, nor one with
// another's, or of something else.
func TestT73ServeSigned(t *testing.T) {
	t.Parallel()
	s, id, good := signedServed(t)
	line := func(key teststand.Signer, change func(*approval.SignedDecision)) string {
		statement := good
		if change != nil {
			change(&statement)
		}
		return approval.SignedLine(key.Signs(statement))
	}
	tip := s.tip()
	plain := good.Fingerprints[0]
	for _, f := range good.Fingerprints {
		if strings.HasPrefix(f, "patchset:") {
			plain = f
		}
	}
	const unsigned = "is not signed, which the Policy asks for: countersign approve "
	for name, c := range map[string]struct {
		more    obj
		message string
	}{
		"no signature":        {obj{}, unsigned + id + " --sign"},
		"null":                {obj{"signature": nil}, unsigned},
		"empty":               {obj{"signature": ""}, "params.signature is not what countersign sign prints"},
		"no string":           {obj{"signature": 1}, "params.signature is of the wrong type"},
		"a list":              {obj{"signature": []string{line(adasKey, nil)}}, "params.signature is of the wrong type"},
		"another name":        {obj{"Signature": line(adasKey, nil)}, `has no member "Signature"`},
		"a space":             {obj{"signature": " "}, "params.signature is not what"},
		"a part of it":        {obj{"signature": line(adasKey, nil)[:200]}, "params.signature is not what"},
		"with LF":             {obj{"signature": line(adasKey, nil) + "\n"}, "more than the one line"},
		"as a block":          {obj{"signature": forge.SignedBlock(adasKey.Signs(good))}, "more than the one line"},
		"the word alone":      {obj{"signature": adasKey.Signs(good).String()}, "params.signature is not what"},
		"not the line":        {obj{"signature": strings.Replace(line(adasKey, nil), "/approve ", "/approve secret:"+plain+" ", 1)}, "does not say what was signed"},
		"other words":         {obj{"signature": line(adasKey, nil), "reason": "something else"}, "not the reason that was signed"},
		"other bytes":         {obj{"signature": line(adasKey, nil), "fingerprint": "patchset:" + strings.Repeat("a", 64)}, "and not about"},
		"no request":          {obj{"signature": line(adasKey, nil), "approvalRequestId": ""}, "params.approvalRequestId is empty"},
		"another request":     {obj{"signature": line(adasKey, nil), "approvalRequestId": "req_9"}, "has no open request"},
		"a denial":            {obj{"signature": line(adasKey, func(s *approval.SignedDecision) { s.Decision = ledger.Deny })}, "params.signature is to deny, and params.decision to approve"},
		"as a denial":         {obj{"signature": line(adasKey, nil), "decision": "deny"}, "params.signature is to approve, and params.decision to deny"},
		"a broken glass":      {obj{"signature": line(adasKey, func(s *approval.SignedDecision) { s.Decision, s.Fingerprints = approval.BreakGlass, []string{plain} })}, "params.signature is to break-glass"},
		"break-glass":         {obj{"signature": line(adasKey, func(s *approval.SignedDecision) { s.Decision, s.Fingerprints = approval.BreakGlass, []string{plain} }), "decision": "break-glass"}, "it is approve or deny"},
		"another key":         {obj{"signature": line(evesKey, nil)}, "do not list"},
		"bob's key":           {obj{"signature": line(teststand.Ed25519(2), nil)}, "lists the key for bob@localhost"},
		"another patch":       {obj{"signature": line(adasKey, func(s *approval.SignedDecision) { s.Fingerprints = []string{"patchset:" + strings.Repeat("a", 64)} })}, "the signature does not count"},
		"another transaction": {obj{"signature": line(adasKey, func(s *approval.SignedDecision) { s.TransactionID = "tx_01KE5W5200041061050R3GG28A" })}, "another transaction"},
		"a pull request": {obj{"signature": line(adasKey, func(s *approval.SignedDecision) {
			s.PullRequest, s.Repository = 1, &ledger.Repository{ID: "1", Name: "a/b"}
		})}, "another repository"},
		"another base":        {obj{"signature": line(adasKey, func(s *approval.SignedDecision) { s.BaseCommit = strings.Repeat("a", 40) })}, "another base"},
		"other risks":         {obj{"signature": line(adasKey, func(s *approval.SignedDecision) { s.Shown = "sha256:" + strings.Repeat("a", 64) })}, "other risks"},
		"to come":             {obj{"signature": line(adasKey, func(s *approval.SignedDecision) { s.DecidedAt = "2026-01-05T12:06:00Z" })}, "still to come"},
		"of before":           {obj{"signature": line(adasKey, func(s *approval.SignedDecision) { s.DecidedAt = "2026-01-04T12:00:00Z" })}, "before the change was proposed"},
		"the other kind only": {obj{"signature": line(adasKey, func(s *approval.SignedDecision) { s.Fingerprints = []string{"protected:" + plain} })}, "it was not signed for " + plain},
	} {
		t.Run(name, func(t *testing.T) {
			params := obj{"transactionId": id, "approvalRequestId": "req_1", "decision": "approve"}
			for member, value := range c.more {
				params[member] = value
			}
			s.refused(codeParams, c.message, "approval/respond", params)
		})
	}
	if s.tip() != tip {
		t.Fatal("something that was refused is recorded")
	}
	params := obj{"transactionId": id, "approvalRequestId": "req_1", "decision": "approve", "signature": line(adasKey, nil)}
	if said := s.must("approval/respond", params); said["ok"] != true || said["verdict"] != "pending" {
		t.Errorf("the change: %v", said)
	}
	params["approvalRequestId"] = "req_2"
	if said := s.must("approval/respond", params); said["ok"] != true || said["verdict"] != "approved" {
		t.Errorf("the protected path: %v", said)
	}
	if done := s.apply(id); done["ok"] != true || s.read("c.txt") != "see\n" {
		t.Errorf("%v", done)
	}
	s.stop()
	s.run(0, "audit")
	s.run(0, "validate", id)
	if log := strings.Join(s.recorded(id), ""); strings.Count(log, `"key_fingerprint":"SHA256:`) != 2 || strings.Count(log, `"kind":"rpc"`) != 2 {
		t.Error(log)
	}
}
