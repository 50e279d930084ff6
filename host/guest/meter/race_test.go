//go:build race

package meter_test

func init() { scriptShare = 8 }
