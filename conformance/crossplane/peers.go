//go:build peers

// Package peers names the real control plane that ours is measured beside, so that go.mod pins its version.
package peers

import _ "github.com/crossplane/crossplane/v2/cmd/crossplane"
