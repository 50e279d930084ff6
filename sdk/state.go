package sdk

import (
	"errors"

	"parley/sdk/abi"
)

// Get returns the value that the state of the unit's conversation group has for key, with what this attempt has staged
// taken into account. ok is false when there is none. The value is valid until the handler returns. The error is
// abi.ErrNoState for a plain message.
func (u *Unit) Get(key string) (value []byte, ok bool, err error) {
	value, n := u.bytes(func(h host, buf []byte) int32 { return h.stateGet(key, buf) })
	if err := result(n); err != nil {
		if errors.Is(err, abi.ErrNotFound) {
			err = nil
		}
		return nil, false, err
	}
	return value, true, nil
}

// Put sets key of the group's state to value.
func (u *Unit) Put(key string, value []byte) error {
	return u.do(func(h host) int32 { return h.statePut(key, value) })
}

// Delete removes key from the group's state. A key that is not there is no error.
func (u *Unit) Delete(key string) error {
	return u.do(func(h host) int32 { return h.stateDelete(key) })
}
