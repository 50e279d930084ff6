package main

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	got, err := parse([]string{"-rounds", "3", "-rows", "send, latency", "-o", "json", "-messages", "500"})
	if err != nil {
		t.Fatal(err)
	}
	if got.rounds != 3 || got.output != "json" || got.messages != 500 || len(got.rows) != 3 {
		t.Errorf("parse = %+v, want 3 rounds, json, 500 messages and 3 rows", got)
	}
}

func TestParseDefaultsLeaveOutWhatTakesMinutes(t *testing.T) {
	got, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range got.rows {
		if row.flag == "backlog" || row.flag == "idle" || row.flag == "timers" {
			t.Errorf("row %q runs by default", row.flag)
		}
	}
	all, err := parse([]string{"-rows", "all"})
	if err != nil || len(all.rows) != len(allRows) || len(got.rows) != len(allRows)-6 {
		t.Errorf("all %d rows, default %d, err %v; there are %d", len(all.rows), len(got.rows), err, len(allRows))
	}
}

func TestParseRefuses(t *testing.T) {
	for _, args := range []string{"-rows nonsense", "-rows plain,", "-o xml", "-rounds 0", "-messages -1", "stray", "-unknown"} {
		if _, err := parse(strings.Fields(args)); err == nil {
			t.Errorf("parse(%q) succeeded", args)
		}
	}
}

func TestNeededNamesBothSides(t *testing.T) {
	rows, err := chooseRows("latency,idle")
	if err != nil {
		t.Fatal(err)
	}
	names := needed(rows)
	if len(names) != 3 || !names["parley-latency"] || !names["bare-latency"] || !names["parley-idle"] {
		t.Errorf("needed = %v", names)
	}
}
