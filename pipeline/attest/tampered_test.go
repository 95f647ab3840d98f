package attest_test

import (
	"bytes"
	"context"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hiddeco/sshsig"
	ita "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"golang.org/x/crypto/ssh"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/countersign-dev/countersign/pipeline/attest"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// foreign verifies with nothing of ours: DSSE by secure-systems-lab's library, the SSH
// signature by another, the statement by in-toto's, and the subject that is asked for.
type foreign struct {
	key       ssh.PublicKey
	namespace string
}

func (f foreign) Verify(_ context.Context, data, sig []byte) error {
	s, err := sshsig.Unarmor(sig)
	if err != nil {
		return err
	}
	return sshsig.Verify(bytes.NewReader(data), s, f.key, sshsig.HashSHA512, f.namespace)
}
func (f foreign) KeyID() (string, error)   { return ssh.FingerprintSHA256(f.key), nil }
func (f foreign) Public() crypto.PublicKey { return f.key }

func newForeign(t testing.TB, public, namespace string) foreign {
	t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(public))
	fatal(t, err)
	return foreign{key, namespace}
}

func (f foreign) check(raw []byte, want attest.Statement) error {
	var e dsse.Envelope
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	v, err := dsse.NewEnvelopeVerifier(f)
	if err != nil {
		return err
	}
	if _, err := v.Verify(context.Background(), &e); err != nil {
		return err
	}
	payload, err := e.DecodeB64Payload()
	if err != nil {
		return err
	}
	var s ita.Statement
	if err := protojson.Unmarshal(payload, &s); err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return err
	}
	if s.PredicateType != want.PredicateType || s.Subject[0].Digest["gitTree"] != want.Tree() || s.Subject[0].Digest["gitCommit"] != want.Commit() {
		return errors.New("it is about something else")
	}
	return nil
}

// ours is the same with this package.
func ours(t testing.TB, raw []byte, public string, want attest.Statement) error {
	o, err := attest.Open(raw)
	if err != nil {
		return err
	}
	if _, err := o.Verify(allowed(t, "ci@example.org "+public+"\n"), now); err != nil {
		return err
	}
	agree, _, err := attest.Agree(o.Statement, want)
	if err == nil && !agree {
		err = errors.New("the record says something else")
	}
	return err
}

// TestVerifiesElsewhere: every statement is one for in-toto's own library, its envelope
// for secure-systems-lab's, and the signature for another library of SSH signatures.
func TestVerifiesElsewhere(t *testing.T) {
	files, ids := storetest.Recorded(t, storetest.Signed)
	of := landed(t, files, ids[0])
	of.Reviewed.Commit, of.Reviewed.Tree = of.Commit, of.Tree
	for _, name := range attest.Names[:3] {
		s, err := attest.New(attest.TypeOf(name), record(files, ids[0]), of)
		fatal(t, err)
		raw, err := attest.Sign(s, sign(signer))
		fatal(t, err)
		namespace := attest.Namespace
		if strings.HasPrefix(name, "gittuf") {
			namespace = "git"
		}
		if err := newForeign(t, signer.Public, namespace).check(raw, s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := ours(t, raw, signer.Public, s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// T79 More than fifty forgeries, and none verifies: not here, and not in the libraries of
// others.
func TestT79Tampered(t *testing.T) {
	s, _ := approvalOf(t, storetest.Signed)
	raw, err := attest.Sign(s, sign(signer))
	fatal(t, err)
	var e attest.Envelope
	fatal(t, canon.Unmarshal(bytes.TrimSuffix(raw, []byte("\n")), &e))
	there := newForeign(t, signer.Public, attest.Namespace)
	tried := 0
	refuse := func(what string, forged []byte) {
		t.Helper()
		tried++
		if bytes.Equal(forged, raw) {
			t.Errorf("%s: nothing was changed", what)
		}
		if err := ours(t, forged, signer.Public, s); err == nil {
			t.Errorf("%s: verifies here", what)
		}
		if err := there.check(forged, s); err == nil {
			t.Errorf("%s: verifies elsewhere", what)
		}
	}
	with := func(change func(*attest.Envelope)) []byte {
		forged := e
		forged.Signatures = []attest.Signature{e.Signatures[0]}
		change(&forged)
		line, err := canon.Line(forged)
		fatal(t, err)
		return line
	}
	b64 := base64.StdEncoding.EncodeToString
	payload, armored := decode(t, e.Payload), decode(t, e.Signatures[0].Sig)

	// Every value of the statement, under the old signature, and under that of somebody else.
	other := teststand.Ed25519(8)
	for at, forged := range leaves(t, payload) {
		refuse("payload "+at, with(func(e *attest.Envelope) { e.Payload = b64(forged) }))
		refuse("payload "+at+" signed by another", with(func(e *attest.Envelope) {
			e.Payload = b64(forged)
			e.Signatures[0].Sig = b64([]byte(other.Sign(attest.Namespace, attest.PAE(attest.PayloadType, forged))))
		}))
	}
	// The signature: of other bytes, for other uses, damaged, of nobody.
	for what, armored := range map[string]string{
		"by another":           other.Sign(attest.Namespace, attest.PAE(attest.PayloadType, payload)),
		"for git":              signer.Sign("git", attest.PAE(attest.PayloadType, payload)),
		"for a decision":       signer.Sign("countersign-decision@v2", attest.PAE(attest.PayloadType, payload)),
		"for files":            signer.Sign("file", attest.PAE(attest.PayloadType, payload)),
		"another version":      signer.Sign("countersign-attestation@v2", attest.PAE(attest.PayloadType, payload)),
		"without PAE":          signer.Sign(attest.Namespace, payload),
		"of another type":      signer.Sign(attest.Namespace, attest.PAE("application/json", payload)),
		"of half":              signer.Sign(attest.Namespace, attest.PAE(attest.PayloadType, payload[:len(payload)/2])),
		"of the base64":        signer.Sign(attest.Namespace, attest.PAE(attest.PayloadType, []byte(e.Payload))),
		"none":                 "",
		"not armored":          strings.ReplaceAll(string(armored), "SSH SIGNATURE", "SSH SIGNATUR"),
		"cut":                  string(armored[:len(armored)/2]),
		"RSA's name":           strings.Replace(string(armored), "U1NIU0lH", "U1NIU0lI", 1),
		"a zero in the number": strings.Replace(string(armored), "AAAAAQ", "AAAAAA", 1),
	} {
		refuse("signature "+what, with(func(e *attest.Envelope) { e.Signatures[0].Sig = b64([]byte(armored)) }))
	}
	for n := range 8 {
		bit := bytes.Clone(armored)
		bit[60+n*20] ^= 1
		refuse(fmt.Sprint("signature bit ", n), with(func(e *attest.Envelope) { e.Signatures[0].Sig = b64(bit) }))
	}
	refuse("payload type", with(func(e *attest.Envelope) { e.PayloadType = "application/json" }))
	refuse("no payload", with(func(e *attest.Envelope) { e.Payload = "" }))
	refuse("no signatures", with(func(e *attest.Envelope) { e.Signatures = []attest.Signature{} }))
	refuse("the other's key id", with(func(e *attest.Envelope) { e.Signatures[0].KeyID = newForeign(t, other.Public, "").id() }))
	refuse("not JSON", raw[:len(raw)/2])
	refuse("empty", nil)
	if tried < 50 {
		t.Errorf("%d forgeries, want 50", tried)
	}
	t.Logf("%d forgeries, none verifies", tried)

	// What others may overlook, and this package does not: a second file of one signature.
	for what, forged := range map[string][]byte{
		"no newline": bytes.TrimSuffix(raw, []byte("\n")), "two": append(bytes.Clone(raw), '\n'), "a blank": append([]byte(" "), raw...),
		"a member more":     []byte(strings.Replace(string(raw), `{"payload"`, `{"extra":1,"payload"`, 1)),
		"a member twice":    []byte(strings.Replace(string(raw), `"payloadType"`, `"payload":"","payloadType"`, 1)),
		"the signature too": with(func(e *attest.Envelope) { e.Signatures = append(e.Signatures, e.Signatures[0]) }),
		"no key id":         with(func(e *attest.Envelope) { e.Signatures[0].KeyID = "" }),
		"lines in base64":   with(func(e *attest.Envelope) { e.Payload = e.Payload[:8] + "\n" + e.Payload[8:] }),
		"base64 for URLs":   with(func(e *attest.Envelope) { e.Signatures[0].Sig = base64.URLEncoding.EncodeToString(armored) + "=" }),
	} {
		if err := ours(t, forged, signer.Public, s); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
}

// T79 Whoever may sign cannot say more than the record: what was signed anew with any
// value changed is no statement, or not the record's.
func TestT79Liar(t *testing.T) {
	s, _ := approvalOf(t, storetest.Signed)
	payload, err := s.Bytes()
	fatal(t, err)
	tried := 0
	for at, forged := range leaves(t, payload) {
		tried++
		line, err := canon.Line(attest.Envelope{
			Payload: base64.StdEncoding.EncodeToString(forged), PayloadType: attest.PayloadType,
			Signatures: []attest.Signature{{KeyID: newForeign(t, signer.Public, "").id(), Sig: base64.StdEncoding.EncodeToString([]byte(signer.Sign(attest.Namespace, attest.PAE(attest.PayloadType, forged))))}},
		})
		fatal(t, err)
		if err := ours(t, line, signer.Public, s); err == nil {
			t.Errorf("%s: taken", at)
		}
	}
	if tried < 50 {
		t.Errorf("only %d values", tried)
	}
}

func (f foreign) id() string { return ssh.FingerprintSHA256(f.key) }

func decode(t testing.TB, text string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	fatal(t, err)
	return data
}

// leaves are documents each of which has one value of a document changed, or one member
// left out, by the place of that.
func leaves(t testing.TB, raw []byte) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	var root any
	add := func(at string) {
		text, err := canon.Marshal(root)
		fatal(t, err)
		out[at] = text
	}
	var walk func(at string, v any, set func(any))
	walk = func(at string, v any, set func(any)) {
		defer set(v)
		switch v := v.(type) {
		case map[string]any:
			for key, below := range v {
				delete(v, key)
				add(at + "/" + key + " gone")
				walk(at+"/"+key, below, func(to any) { v[key] = to })
			}
		case []any:
			if len(v) > 0 {
				set(v[:len(v)-1])
				add(at + " shorter")
			}
			set(append(slices.Clone(v), "a"))
			add(at + " longer")
			set(v)
			for i, below := range v {
				walk(at+"/"+strconv.Itoa(i), below, func(to any) { v[i] = to })
			}
		case string:
			last := "a"
			if strings.HasSuffix(v, last) {
				last = "b"
			}
			set(v[:max(0, len(v)-1)] + last)
			add(at)
		case bool:
			set(!v)
			add(at)
		case float64:
			set(v + 1)
			add(at)
		}
	}
	root, err := canon.Parse(raw)
	fatal(t, err)
	walk("", root, func(any) {})
	return out
}

// FuzzOpen: what is read is what would be written.
func FuzzOpen(f *testing.F) {
	s, _ := approvalOf(f, storetest.Signed)
	raw, err := attest.Sign(s, sign(signer))
	fatal(f, err)
	f.Add(raw)
	f.Add([]byte(`{"payload":"","payloadType":"application/vnd.in-toto+json","signatures":[]}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := attest.Open(data)
		if err != nil {
			return
		}
		if again, err := o.Statement.Bytes(); err != nil || !bytes.Equal(again, o.Payload) {
			t.Errorf("%q is written as %q, %v", o.Payload, again, err)
		}
		_, _ = o.Verify(allowed(t, "a "+signer.Public), now)
	})
}

// FuzzStatement: what is read is what would be written.
func FuzzStatement(f *testing.F) {
	s, _ := approvalOf(f, storetest.Signed)
	raw, err := s.Bytes()
	fatal(f, err)
	f.Add(raw)
	f.Add([]byte(`{"predicate":{"fromID":"","targetID":"","targetRef":""},"predicate_type":"https://gittuf.dev/reference-authorization/v0.2","subject":[{"digest":{}}],"type":"https://in-toto.io/Statement/v1"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := attest.ParseStatement(data)
		if err != nil {
			return
		}
		if again, err := s.Bytes(); err != nil || !bytes.Equal(again, data) {
			t.Errorf("%q is written as %q, %v", data, again, err)
		}
	})
}
