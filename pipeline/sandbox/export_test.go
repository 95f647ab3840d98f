package sandbox

// WithoutNamespaces is s on a kernel that denies user namespaces.
func WithoutNamespaces(s Sandbox) Sandbox {
	s.denyNamespaces = true
	return s
}

// Environment is what a command gets.
var Environment = environment
