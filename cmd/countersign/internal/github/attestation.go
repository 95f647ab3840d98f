package github

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
)

// StoreAttestation gives GitHub a Sigstore bundle to keep with the repository's attestations,
// and returns its number there ("Create an attestation" of the REST API's documentation). It
// takes a token with attestations:write.
func (c *Client) StoreAttestation(ctx context.Context, bundle json.RawMessage) (id string, err error) {
	var made struct{ ID int64 }
	err = c.post(ctx, &made, map[string]json.RawMessage{"bundle": bundle}, c.Below("attestations")...)
	if err == nil && made.ID <= 0 {
		err = rest.Unusable("the attestation has no number")
	}
	return strconv.FormatInt(made.ID, 10), failed("storing an attestation", err)
}
