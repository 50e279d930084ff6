package cronspec_test

import (
	"fmt"
	"time"

	"parley/broker/cronspec"
)

// The clocks of New York skip 02:30 on this night, so the run is put at 03:00 local time.
func ExampleSchedule_Next() {
	nightly, err := cronspec.Parse("30 2 * * *", "America/New_York", time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	next, moved := nightly.Next(time.Date(2026, 3, 7, 17, 0, 0, 0, time.UTC))
	fmt.Println(next.Format(time.RFC3339), moved)
	// Output: 2026-03-08T07:00:00Z true
}
