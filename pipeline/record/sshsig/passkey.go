package sshsig

import (
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// ForDecisions is the namespace of people's decisions, the only one that a passkey signs for.
const ForDecisions = "countersign-decision@v2"

// webauthn is the form of a signature of sk-ecdsa-sha2-nistp256 that a browser had a passkey make (OpenSSH's PROTOCOL.u2f).
const webauthn = "webauthn-sk-ecdsa-sha2-nistp256@openssh.com"

// sameOrigin are a browser's words where no page of another origin is around the one that asked.
const sameOrigin = `,"crossOrigin":false`

// The flags of a security key's signature (OpenSSH's PROTOCOL.u2f; WebAuthn, section 6.1, for the last two).
const (
	flagPresent     = 1 << 0
	flagVerified    = 1 << 2
	backupEligible  = 1 << 3
	backedUp        = 1 << 4
	ofEveryPasskey  = flagPresent | flagVerified
	maybeOfAPasskey = ofEveryPasskey | backupEligible | backedUp
)

// fromBrowser takes apart a signature that a browser had a passkey make. What the passkey signs is the browser's
// own words (WebAuthn, section 5.8.1.1), so these have to say that a page of an origin asked for a signature, with the
// data as the challenge. It returns the words, their signature as a security key makes it, and the origin.
func fromBrowser(data []byte, sig ssh.Signature) (words []byte, made ssh.Signature, origin string, err error) {
	var rest struct {
		Flags      byte
		Counter    uint32
		Origin     string
		ClientData []byte
		Extensions string
	}
	if ssh.Unmarshal(sig.Rest, &rest) != nil {
		return nil, made, "", malformed("its innermost part is not that of a passkey")
	}
	begin := fmt.Sprintf(`{"type":"webauthn.get","challenge":"%s","origin":"%s"`, base64.RawURLEncoding.EncodeToString(data), rest.Origin)
	more, begins := strings.CutPrefix(string(rest.ClientData), begin)
	switch {
	case rest.Origin == "" || strings.ContainsAny(rest.Origin, `"\`) || !begins:
		return nil, made, "", fmt.Errorf("%w: the browser was asked for something else", ErrBadSignature)
	case more != "}" && more != sameOrigin+"}" && !(strings.HasPrefix(more, sameOrigin+",") && strings.HasSuffix(more, "}")):
		return nil, made, "", fmt.Errorf("%w: a page inside one of another origin asked for it", ErrBadSignature)
	case rest.Flags&ofEveryPasskey != ofEveryPasskey:
		return nil, made, "", fmt.Errorf("%w: the passkey did not verify the person", ErrBadSignature)
	case rest.Flags&^maybeOfAPasskey != 0 || rest.Extensions != "":
		return nil, made, "", malformed("the passkey signed more than was asked for")
	}
	return rest.ClientData, ssh.Signature{Format: ssh.KeyAlgoSKECDSA256, Blob: sig.Blob, Rest: sig.Rest[:5]}, rest.Origin, nil
}

// relyingParty is the application of a security key's public key: of a passkey the host of the pages that may ask it.
func relyingParty(key ssh.PublicKey) string {
	if key.Type() == ssh.KeyAlgoSKED25519 {
		var fields struct{ Type, Key, Application string }
		_ = ssh.Unmarshal(key.Marshal(), &fields)
		return fields.Application
	}
	var fields struct{ Type, Curve, Point, Application string }
	_ = ssh.Unmarshal(key.Marshal(), &fields)
	return fields.Application
}
