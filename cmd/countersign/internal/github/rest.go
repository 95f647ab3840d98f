package github

import "github.com/countersign-dev/countersign/cmd/countersign/internal/rest"

// forgeName is how errors name it.
const forgeName = "GitHub"

func failed(op string, err error) error { return rest.Failed(forgeName, op, err) }
