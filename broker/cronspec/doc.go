// Package cronspec turns a cron spec and a time zone into firing instants.
//
// Accepted are five fields (minute, hour, day of month, month, day of week), six fields (seconds first), the descriptors
// @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly, and the interval @every DURATION in whole
// seconds. A spec may begin with TZ=ZONE or CRON_TZ=ZONE. Every spec is checked here before the cron library sees it,
// since the library panics on some (TZ=UTC alone) and silently changes the meaning of others
// (@every 500ms becomes one second, "1,,2" loses an item, "*-5" is read as "*").
//
// Clock changes. The library's own arithmetic misses a day when the clock skips the planned time and fires twice when an
// hour repeats. Here the library plans on a clock without changes, and each planned wall-clock time is then placed in
// the zone:
//
//   - a spec that names hours ("30 2 * * *"): a time inside a skipped hour fires at the first valid instant after it and
//     is reported as moved; a time inside a repeated hour fires once, at its first occurrence;
//   - a spec that fires in every hour ("*/15 * * * *", "@hourly") is an interval in disguise: it keeps its rhythm through
//     both passes of a repeated hour and has nothing to catch up after a skipped one;
//   - @every counts seconds and does not look at zones.
//
// Two planned times that a skip moves to the same instant are one firing. A firing that the spec plans at that very
// instant anyway is not reported as moved.
//
// Bounds: a spec has at most 256 bytes. One that cannot fire within five years, or would fire more often than once a
// second, is refused. Zones come from the IANA database, which is embedded in the binary; names that mean something else
// on each host (Local, posixrules, right/…) are refused. The zone is UTC when none is given.
//
// The library's runner is not used, only its parser and Schedule.Next, so nothing here runs jobs, recovers panics or
// holds state between firings.
package cronspec
