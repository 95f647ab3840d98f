//go:build unix

package agent

import (
	"os"
	"os/signal"
	"syscall"
)

// Asked tells each time that SIGUSR1 asks for a proposal, until the function is called. A signal after that ends nobody.
func Asked() (asked <-chan os.Signal, unheard func()) {
	all := make(chan os.Signal, 1)
	signal.Notify(all, syscall.SIGUSR1)
	return all, func() {
		signal.Ignore(syscall.SIGUSR1) // stops it as well
		close(all)
	}
}
