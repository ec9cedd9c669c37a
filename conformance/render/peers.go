//go:build peers

// Package peers names the real programs that rendering is compared with, so that go.mod pins their versions.
package peers

import _ "github.com/crossplane/crossplane/v2/cmd/crank"
