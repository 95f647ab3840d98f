package agent

import "os"

// Asked tells of nothing here: there is no such signal.
func Asked() (asked <-chan os.Signal, unheard func()) {
	all := make(chan os.Signal)
	return all, func() { close(all) }
}
