//go:build !wasip1

package sdk

import "embed"

// Sources is the source text of this package and of sdk/abi, for plugins outside of the repository: a build gives them
// this text as their module "parley".
//
//go:embed *.go abi/*.go
var Sources embed.FS
