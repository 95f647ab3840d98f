package gitea

// WithPages is the client with pages of so many entries.
func (c *Client) WithPages(size int) *Client {
	c.pageSize = size
	return c
}
