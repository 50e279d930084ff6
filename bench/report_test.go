package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"parley/bench/measure"
)

func resultsOf(kind measure.Kind, name string, values ...float64) []measure.Result {
	var results []measure.Result
	for i, value := range values {
		results = append(results, measure.Result{Workload: name, Kind: kind, Round: i + 1, Value: value})
	}
	return results
}

func TestCompareJudgesTheWorstPairedRound(t *testing.T) {
	results := append(resultsOf(measure.Rate, "us", 100, 90, 120), resultsOf(measure.Rate, "them", 10, 5, 20)...)
	for _, tt := range []struct {
		limit float64
		met   bool
	}{{6, true}, {6.01, false}} {
		got := compare(row{work: "w", ours: "us", theirs: "them", limit: tt.limit}, results, nil)
		if got.MedianRatio != 10 || got.WorstRatio != 6 || got.Met != tt.met {
			t.Errorf("limit %v: median %v worst %v met %v, want 10, 6, %v", tt.limit, got.MedianRatio, got.WorstRatio, got.Met, tt.met)
		}
	}
}

func TestCompareWithAnUpperLimitJudgesTheLargest(t *testing.T) {
	results := append(resultsOf(measure.Latency, "us", 200, 300), resultsOf(measure.Latency, "them", 100, 100)...)
	got := compare(row{ours: "us", theirs: "them", limit: 2.9, upper: true}, results, nil)
	if got.WorstRatio != 3 || got.Met || got.Verdict != "NOT MET" {
		t.Errorf("worst %v met %v verdict %q, want 3, false, NOT MET", got.WorstRatio, got.Met, got.Verdict)
	}
}

func TestCompareWithoutContenderJudgesTheFigure(t *testing.T) {
	got := compare(row{ours: "us", limit: 3, upper: true}, resultsOf(measure.Idle, "us", 1, 2.5), nil)
	if got.WorstRatio != 2.5 || !got.Met {
		t.Errorf("worst %v met %v, want 2.5, true", got.WorstRatio, got.Met)
	}
}

func TestCompareNeverCallsAMissingSideMet(t *testing.T) {
	ours := resultsOf(measure.Rate, "us", 100)
	got := compare(row{ours: "us", theirs: "them", limit: 1}, ours, map[string]string{"them": "not run: no node"})
	if got.Met || got.Verdict != "not run: no node" {
		t.Errorf("met %v verdict %q, want not run: no node", got.Met, got.Verdict)
	}
}

func TestResultsOfLaterRoundsMeasuredEarlierArePairedByRound(t *testing.T) {
	results := []measure.Result{
		{Workload: "us", Round: 2, Value: 20},
		{Workload: "us", Round: 1, Value: 10},
		{Workload: "them", Round: 1, Value: 1},
		{Workload: "them", Round: 2, Value: 4},
	}
	if got := compare(row{ours: "us", theirs: "them"}, results, nil); got.WorstRatio != 5 || got.MedianRatio != 7.5 {
		t.Errorf("worst %v median %v, want 5 and 7.5", got.WorstRatio, got.MedianRatio)
	}
}

func TestThousands(t *testing.T) {
	for value, want := range map[float64]string{0: "0", 999.4: "999", 999.6: "1,000", 184200: "184,200", 1e6: "1,000,000"} {
		if got := thousands(value); got != want {
			t.Errorf("thousands(%v) = %s, want %s", value, got, want)
		}
	}
}

func TestTextShowsRateRatioTargetAndVerdict(t *testing.T) {
	results := append(resultsOf(measure.Rate, "us", 80000), resultsOf(measure.Rate, "them", 5000)...)
	r := report{Rows: []comparison{compare(row{work: "plain", ours: "us", theirs: "them", limit: 13}, results, nil)}}
	var out bytes.Buffer
	if err := writeText(&out, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"80,000/s", "5,000/s", "16.00 x", ">= 13 x", "met"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

func TestTextShowsFiguresThatStandAlone(t *testing.T) {
	r := report{Rows: []comparison{
		compare(row{work: "idle", ours: "idle", limit: 3, upper: true}, resultsOf(measure.Idle, "idle", 0.5), nil),
		compare(row{work: "due", ours: "due", limit: 1_000_000, upper: true}, resultsOf(measure.Latency, "due", 180_000), nil),
	}}
	var out bytes.Buffer
	if err := writeText(&out, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one core", "0.50 %", "<= 3 %", "180000 us", "<= 1000000 us"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

func TestJSONHoldsEachRowWithItsRatios(t *testing.T) {
	results := append(resultsOf(measure.Rate, "us", 8), resultsOf(measure.Rate, "them", 2)...)
	r := report{Rows: []comparison{compare(row{ours: "us", theirs: "them", limit: 5}, results, nil)}, Results: results}
	var out bytes.Buffer
	if err := write(&out, "json", r); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Rows []struct {
			Median  float64 `json:"median_ratio"`
			AtLeast float64 `json:"at_least"`
			Met     bool    `json:"met"`
		}
		Results []measure.Result
	}
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Rows) != 1 || back.Rows[0].Median != 4 || back.Rows[0].AtLeast != 5 || back.Rows[0].Met || len(back.Results) != 2 {
		t.Errorf("JSON came back as %+v", back)
	}
}
