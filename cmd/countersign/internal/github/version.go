package github

import (
	"context"
	"strconv"
	"strings"
)

// Version is that of an Enterprise Server, "" for github.com, which is not asked.
func (c *Client) Version(ctx context.Context) (string, error) {
	if c.api.BaseURL.Host == "api.github.com" {
		return "", nil
	}
	resp, err := c.inRepository(ctx, nil, nil)
	if err != nil {
		return "", failed("reading the server's version", err)
	}
	return resp.Header.Get("X-GitHub-Enterprise-Version"), nil
}

// RunsBaseWorkflows is forge.Forge's: GitHub Enterprise Server took the file of a
// pull_request_target workflow from the pull request's base before 3.20.
func (c *Client) RunsBaseWorkflows(ctx context.Context) (string, error) {
	version, err := c.Version(ctx)
	if err != nil || !RunsBaseWorkflows(version) {
		return "", err
	}
	return "GitHub Enterprise Server " + version, nil
}

// RunsBaseWorkflows reports whether a server of that version does.
func RunsBaseWorkflows(version string) bool { return version != "" && !atLeast(version, 3, 20) }

// atLeast compares a version such as 3.19.2; one that cannot be read is not.
func atLeast(version string, major, minor int) bool {
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return false
	}
	have, err1 := strconv.Atoi(parts[0])
	less, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (have > major || have == major && less >= minor)
}
