package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-openapi/runtime"
	ct "github.com/google/certificate-transparency-go"
	cttls "github.com/google/certificate-transparency-go/tls"
	ctx509util "github.com/google/certificate-transparency-go/x509util"
	prototrustroot "github.com/sigstore/protobuf-specs/gen/pb-go/trustroot/v1"
	"github.com/sigstore/rekor/pkg/generated/models"
	"github.com/sigstore/rekor/pkg/types"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
)

const (
	issuer   = "https://token.actions.githubusercontent.com"
	workflow = "acme/app/.github/workflows/attest.yml@refs/heads/main"
	identity = "https://github.com/" + workflow
)

// An authority is an instance of Sigstore on loopback, with a log of one entry at a time: what
// gives a job its token, what signs certificates, what logs them, and what logs signatures.
type authority struct {
	t                *testing.T
	server           *httptest.Server
	virtual          *ca.VirtualSigstore
	top              *x509.Certificate
	intermediate     *x509.Certificate
	intermediateKey  *ecdsa.PrivateKey
	certificateLog   *ecdsa.PrivateKey
	dir              string
	aged             time.Duration // how long ago certificates began
	withoutSCT       bool
	trusted, signing string // files
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	var err error
	a.virtual, err = ca.NewVirtualSigstore()
	check(t, err)
	var key *ecdsa.PrivateKey
	a.top, key, err = ca.GenerateRootCa()
	check(t, err)
	a.intermediate, a.intermediateKey, err = ca.GenerateFulcioIntermediate(a.top, key)
	check(t, err)
	a.certificateLog, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /token", a.token)
	mux.HandleFunc("POST /api/v2/signingCert", a.sign)
	mux.HandleFunc("POST /api/v1/log/entries", a.log)
	a.server = httptest.NewServer(mux)
	t.Cleanup(a.server.Close)
	a.trusted, a.signing = a.write("trusted_root.json", a.trustedRoot()), a.write("signing_config.json", a.signingConfig())
	return a
}

func (a *authority) write(name string, raw []byte) string {
	a.t.Helper()
	file := filepath.Join(a.dir, name)
	check(a.t, os.WriteFile(file, raw, 0o666))
	return file
}

func logID(t *testing.T, key crypto.PublicKey) [32]byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	check(t, err)
	return sha256.Sum256(der)
}

func (a *authority) trustedRoot() []byte {
	from, to := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	logs := map[string]*root.TransparencyLog{}
	for id, log := range a.virtual.RekorLogs() {
		raw, err := hex.DecodeString(id)
		check(a.t, err)
		log.ID = raw
		logs[id] = log
	}
	id := logID(a.t, a.certificateLog.Public())
	certificates := map[string]*root.TransparencyLog{hex.EncodeToString(id[:]): {
		BaseURL: "https://ctfe.localhost", ID: id[:], ValidityPeriodStart: from, ValidityPeriodEnd: to,
		HashFunc: crypto.SHA256, PublicKey: a.certificateLog.Public(), SignatureHashFunc: crypto.SHA256,
	}}
	made, err := root.NewTrustedRoot(root.TrustedRootMediaType01, []root.CertificateAuthority{&root.FulcioCertificateAuthority{
		Root: a.top, Intermediates: []*x509.Certificate{a.intermediate}, ValidityPeriodStart: from, ValidityPeriodEnd: to, URI: "https://fulcio.localhost",
	}}, certificates, nil, logs)
	check(a.t, err)
	raw, err := made.MarshalJSON()
	check(a.t, err)
	return raw
}

func (a *authority) signingConfig() []byte {
	service := []root.Service{{URL: a.server.URL, MajorAPIVersion: 1, ValidityPeriodStart: time.Now().Add(-time.Hour), Operator: "localhost"}}
	any := root.ServiceConfiguration{Selector: prototrustroot.ServiceSelector_ANY}
	made, err := root.NewSigningConfig(root.SigningConfigMediaType02, service, nil, service, any, nil, any)
	check(a.t, err)
	raw, err := made.MarshalJSON()
	check(a.t, err)
	return raw
}

// token gives a job that has the secret a token of its identity.
func (a *authority) token(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "bearer secret" || r.URL.Query().Get("audience") != "sigstore" || r.URL.Query().Get("v") != "1" {
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	claims := fmt.Sprintf(`{"iss":%q,"sub":"repo:acme/app:ref:refs/heads/main","job_workflow_ref":%q,"aud":"sigstore"}`, issuer, workflow)
	encode := base64.RawURLEncoding.EncodeToString
	fmt.Fprintf(w, `{"value":%q}`, encode([]byte(`{"alg":"none"}`))+"."+encode([]byte(claims))+".x")
}

// sign makes a certificate, with the promise of the log of certificates in it.
func (a *authority) sign(w http.ResponseWriter, r *http.Request) {
	claims, err := base64.RawURLEncoding.DecodeString(strings.Split(r.Header.Get("Authorization"), ".")[1])
	check(a.t, err)
	var who struct {
		Sub string `json:"sub"`
		Ref string `json:"job_workflow_ref"`
	}
	check(a.t, json.Unmarshal(claims, &who))
	var asked struct {
		PublicKeyRequest struct {
			PublicKey         struct{ Content string }
			ProofOfPossession []byte
		}
	}
	check(a.t, json.NewDecoder(r.Body).Decode(&asked))
	block, _ := pem.Decode([]byte(asked.PublicKeyRequest.PublicKey.Content))
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	check(a.t, err)
	if sum := sha256.Sum256([]byte(who.Sub)); !ecdsa.VerifyASN1(key.(*ecdsa.PublicKey), sum[:], asked.PublicKeyRequest.ProofOfPossession) {
		http.Error(w, "no proof", http.StatusBadRequest)
		return
	}
	chain := []string{}
	for _, der := range [][]byte{a.certificate(key, who.Ref), a.intermediate.Raw, a.top.Raw} {
		chain = append(chain, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	}
	check(a.t, json.NewEncoder(w).Encode(map[string]any{"signedCertificateEmbeddedSct": map[string]any{"chain": map[string]any{"certificates": chain}}}))
}

func (a *authority) certificate(key crypto.PublicKey, ref string) []byte {
	who, err := url.Parse("https://github.com/" + ref)
	check(a.t, err)
	from, err := asn1.MarshalWithParams(issuer, "utf8")
	check(a.t, err)
	begin := time.Now().Add(-a.aged)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), URIs: []*url.URL{who}, NotBefore: begin, NotAfter: begin.Add(10 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: []pkix.Extension{
			{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(issuer)},
			{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}, Value: from},
		},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.intermediate, key, a.intermediateKey)
	check(a.t, err)
	if a.withoutSCT {
		return der
	}
	plain, err := x509.ParseCertificate(der)
	check(a.t, err)
	sct := ct.SignedCertificateTimestamp{SCTVersion: ct.V1, LogID: ct.LogID{KeyID: logID(a.t, a.certificateLog.Public())}, Timestamp: uint64(time.Now().UnixMilli())}
	input, err := ct.SerializeSCTSignatureInput(sct, ct.LogEntry{Leaf: ct.MerkleTreeLeaf{
		Version: ct.V1, LeafType: ct.TimestampedEntryLeafType,
		TimestampedEntry: &ct.TimestampedEntry{Timestamp: sct.Timestamp, EntryType: ct.PrecertLogEntryType, PrecertEntry: &ct.PreCert{
			IssuerKeyHash: sha256.Sum256(a.intermediate.RawSubjectPublicKeyInfo), TBSCertificate: plain.RawTBSCertificate,
		}},
	}})
	check(a.t, err)
	signature, err := cttls.CreateSignature(*a.certificateLog, cttls.SHA256, input)
	check(a.t, err)
	sct.Signature = ct.DigitallySigned(signature)
	list, err := ctx509util.MarshalSCTsIntoSCTList([]*ct.SignedCertificateTimestamp{&sct})
	check(a.t, err)
	raw, err := cttls.Marshal(*list)
	check(a.t, err)
	value, err := asn1.Marshal(raw)
	check(a.t, err)
	template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}, Value: value})
	der, err = x509.CreateCertificate(rand.Reader, template, a.intermediate, key, a.intermediateKey)
	check(a.t, err)
	return der
}

// log takes an entry, as Rekor's API of version 1 does.
func (a *authority) log(w http.ResponseWriter, r *http.Request) {
	proposed, err := models.UnmarshalProposedEntry(r.Body, runtime.JSONConsumer())
	check(a.t, err)
	entry, err := types.CreateVersionedEntry(proposed)
	check(a.t, err)
	body, err := types.CanonicalizeEntry(context.Background(), entry)
	check(a.t, err)
	proof, err := a.virtual.GetInclusionProof(body)
	check(a.t, err)
	id, err := a.virtual.RekorLogID()
	check(a.t, err)
	now, index, encoded := time.Now().Unix(), int64(0), base64.StdEncoding.EncodeToString(body)
	promise, err := a.virtual.RekorSignPayload(tlog.RekorPayload{Body: encoded, IntegratedTime: now, LogIndex: index, LogID: id})
	check(a.t, err)
	uuid := strings.Repeat("0", 64)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", uuid)
	w.Header().Set("Location", "/api/v1/log/entries/"+uuid)
	w.WriteHeader(http.StatusCreated)
	check(a.t, json.NewEncoder(w).Encode(models.LogEntry{uuid: {
		Body: encoded, IntegratedTime: &now, LogIndex: &index, LogID: &id,
		Verification: &models.LogEntryAnonVerification{InclusionProof: proof, SignedEntryTimestamp: promise},
	}}))
}

// job is the environment of a job that may ask for a token.
func (a *authority) job(name string) string {
	return map[string]string{"ACTIONS_ID_TOKEN_REQUEST_URL": a.server.URL + "/token?v=1", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "secret"}[name]
}

// program runs the program, and returns its exit code and what it said.
func (a *authority) program(input []byte, args ...string) (code int, out []byte, said string) {
	a.t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(a.t.Context(), args, bytes.NewReader(input), &stdout, &stderr, a.job)
	return code, stdout.Bytes(), stderr.String()
}

// bundle signs a statement.
func (a *authority) bundle(statement []byte) []byte {
	a.t.Helper()
	code, out, said := a.program(statement, "sign", "--signing-config", a.signing, "--trusted-root", a.trusted)
	if code != 0 {
		a.t.Fatalf("exit code %d: %s", code, said)
	}
	return out
}
