//go:build peers

// Package peers names the real programs that packages pass through, so that go.mod pins their versions.
package peers

import _ "github.com/google/go-containerregistry/cmd/crane"
