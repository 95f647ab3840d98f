package github

import "context"

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
