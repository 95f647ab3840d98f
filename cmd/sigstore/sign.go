package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"google.golang.org/protobuf/encoding/protojson"
)

// payloadType says what the envelope of a bundle holds.
const payloadType = "application/vnd.in-toto+json"

// serverTime is how long one server is waited for.
const serverTime = 30 * time.Second

// signStatement makes a bundle of a statement: signed with a key that lives as long as this
// function, for which an authority has signed the job's identity, and entered into a log. What
// comes of it is verified before it is given out.
func signStatement(ctx context.Context, statement []byte, i instance, getenv func(string) string) ([]byte, error) {
	if !json.Valid(statement) {
		return nil, usage("standard input is no statement")
	}
	if (i.signingConfig == "") != (i.trustedRoot == "") {
		return nil, usage("--signing-config and --trusted-root belong together")
	}
	token, err := idToken(ctx, getenv)
	if err != nil {
		return nil, err
	}
	options, err := services(ctx, i)
	if err != nil {
		return nil, err
	}
	options.CertificateProviderOptions = &sign.CertificateProviderOptions{IDToken: token}
	key, err := sign.NewEphemeralKeypair(nil)
	if err != nil {
		return nil, err
	}
	made, err := sign.Bundle(&sign.DSSEData{Data: statement, PayloadType: payloadType}, key, options)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return protojson.Marshal(made)
}

// services are those of an instance that sign.
func services(ctx context.Context, i instance) (sign.BundleOptions, error) {
	var o sign.BundleOptions
	config, err := i.signers()
	if err != nil {
		return o, err
	}
	trusted, err := i.trusted()
	if err != nil {
		return o, err
	}
	now := time.Now()
	o.Context, o.TrustedRoot = ctx, trusted
	authority, err := root.SelectService(config.FulcioCertificateAuthorityURLs(), sign.FulcioAPIVersions, now)
	if err != nil {
		return o, fmt.Errorf("choosing an authority: %w", err)
	}
	o.CertificateProvider = sign.NewFulcio(&sign.FulcioOptions{BaseURL: authority.URL, Timeout: serverTime, Retries: 2})
	logs, err := root.SelectServices(config.RekorLogURLs(), config.RekorLogURLsConfig(), sign.RekorAPIVersions, now)
	if err != nil {
		return o, fmt.Errorf("choosing a log: %w", err)
	}
	for _, log := range logs {
		o.TransparencyLogs = append(o.TransparencyLogs, sign.NewRekor(&sign.RekorOptions{BaseURL: log.URL, Timeout: serverTime, Retries: 2, Version: log.MajorAPIVersion}))
	}
	if len(config.TimestampAuthorityURLs()) == 0 {
		return o, nil
	}
	clocks, err := root.SelectServices(config.TimestampAuthorityURLs(), config.TimestampAuthorityURLsConfig(), sign.TimestampAuthorityAPIVersions, now)
	if err != nil {
		return o, fmt.Errorf("choosing a timestamping authority: %w", err)
	}
	for _, clock := range clocks {
		o.TimestampAuthorities = append(o.TimestampAuthorities, sign.NewTimestampAuthority(&sign.TimestampAuthorityOptions{URL: clock.URL, Timeout: serverTime, Retries: 2}))
	}
	return o, nil
}

// audience is whom the token is for: only Sigstore takes it.
const audience = "sigstore"

// idToken asks for the token of the job's identity (GitHub's documentation, "OpenID Connect
// reference"). The token that asks goes to that server alone.
func idToken(ctx context.Context, getenv func(string) string) (string, error) {
	address, secret := getenv("ACTIONS_ID_TOKEN_REQUEST_URL"), getenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
	if address == "" || secret == "" {
		return "", usage("there is no token to ask for the job's identity with")
	}
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "https" && !(at.Scheme == "http" && loopback(at.Hostname())) {
		return "", usage("ACTIONS_ID_TOKEN_REQUEST_URL is no https address")
	}
	query := at.Query()
	query.Set("audience", audience)
	at.RawQuery = query.Encode()
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return "", errors.New("asking for the job's identity: the address is none")
	}
	req.Header.Set("Authorization", "bearer "+secret)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		var where *url.Error
		if errors.As(err, &where) {
			err = where.Err // without the address
		}
		return "", fmt.Errorf("asking for the job's identity: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("asking for the job's identity: the server answers %d", resp.StatusCode)
	}
	var got struct{ Value string }
	if err := json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&got); err != nil || got.Value == "" {
		return "", errors.New("asking for the job's identity: the answer has no token")
	}
	return got.Value, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
