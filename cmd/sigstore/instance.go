package main

import (
	"fmt"
	"os"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/tuf"
)

// An instance of Sigstore is named by two files, or is the public one.
type instance struct{ signingConfig, trustedRoot string }

// mostFile is the size of the largest of these files that is read.
const mostFile = 16 << 20

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > mostFile {
		return nil, fmt.Errorf("%s is no file, or has more than %d bytes", name, mostFile)
	}
	return os.ReadFile(name)
}

// public asks the public instance, from the root of trust that is in this program. Nothing is
// kept on disk, where another could have put it.
func public() (*tuf.Client, error) {
	options := tuf.DefaultOptions()
	options.DisableLocalCache = true
	client, err := tuf.New(options)
	if err != nil {
		err = fmt.Errorf("asking Sigstore's public instance what is trusted: %w", err)
	}
	return client, err
}

// trusted are the authorities and logs that are trusted.
func (i instance) trusted() (root.TrustedMaterial, error) {
	if i.trustedRoot == "" {
		client, err := public()
		if err != nil {
			return nil, err
		}
		return root.GetTrustedRoot(client)
	}
	raw, err := readFile(i.trustedRoot)
	if err != nil {
		return nil, err
	}
	trusted, err := root.NewTrustedRootFromJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("%s is no trusted root: %w", i.trustedRoot, err)
	}
	return trusted, nil
}

// signers are the authorities and logs that sign.
func (i instance) signers() (*root.SigningConfig, error) {
	if i.signingConfig == "" {
		client, err := public()
		if err != nil {
			return nil, err
		}
		return root.GetSigningConfig(client)
	}
	raw, err := readFile(i.signingConfig)
	if err != nil {
		return nil, err
	}
	config, err := root.NewSigningConfigFromJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("%s is no signing config: %w", i.signingConfig, err)
	}
	return config, nil
}
