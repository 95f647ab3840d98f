// Command countersign binds a human's approval to the exact bytes of a patch,
// applies those and nothing else, and proves it in a ledger inside the
// repository. README.md shows it at work; docs/ has the formats.
package main

import (
	"crypto/rand"
	"os"
	"time"

	"github.com/countersign-dev/countersign/pipeline/sandbox"
)

func main() {
	sandbox.Child() // a command's first process is this program again
	app := App{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv, Now: time.Now, Entropy: rand.Reader,
	}
	os.Exit(app.Main())
}
