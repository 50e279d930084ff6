package main

import (
	"context"
)

// connect opens the broker.
func connect(context.Context, connectOptions) (*client, error) {
	return nil, notYet("the broker")
}
