# make check is what a change must pass. Each target installs what it needs with
# apt-get when it runs as root, and otherwise says what is missing.

# Two packages at a time: their tests start servers and compile plugins.
GOTEST  := go test -p 2 -timeout 25m
FUZZTIME ?= 30s

.PHONY: help build test test-libxml2 random failovers race test-bench lint check fuzz chaos bench bench-guest tools

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Without the tag the binary is pure Go and refuses valid_xml.
build: ## build the binary that is released, bin/runtime, with XML Schema by libxml2
	@.ci/tools libxml2
	go build -tags libxml2 -o bin/runtime ./cmd/runtime

tools: ## install or find what the tests need
	@.ci/tools redis-server wat2wasm gcc

test: tools ## all tests of the main module, on real servers
	$(GOTEST) ./...

test-libxml2: ## the tests that need the released build: XML Schema, down to the command line
	@.ci/tools redis-server libxml2
	$(GOTEST) -tags libxml2 ./broker/validate/...
	$(GOTEST) -tags libxml2 -run '^TestValidXML' ./cmd/runtime

random: tools ## the random test at its full length: 10,000 steps on each server
	PARLEY_RANDOM_STEPS=10000 go test -timeout 60m -run '^TestConformance(Real|Embedded)$$/^Random$$' ./broker/redisbroker

failovers: tools ## ten failovers of each kind under load, with handlers of up to 0.7 s
	PARLEY_FAILOVERS=10 go test -timeout 60m -v -run '^Test(AFailoverToALaggingReplica|ATakeoverOnACluster)' ./broker/redisbroker

# Under the race detector the scripts' interpreter of the embedded server, which
# one goroutine uses at a time, takes three quarters of the time; the same calls
# of ours are made against the real server.
NORACE := ^TestConformanceEmbedded$$/^(Rules|Several|Broken|Holes|Cases|Found)$$|^TestScripts$$|^TestPlantedFaultsAreFound$$|^TestAScriptStaysInTheSlotOfItsKey$$|^TestEveryPartOfAScriptIsNeeded$$

# The meter is pure and starts no goroutine: the race detector finds nothing
# there and makes its interpreted guests many times slower.
race: tools ## the same tests under the race detector, less what runs no goroutines of ours
	@.ci/tools gcc
	$(GOTEST) -race -short -skip '$(NORACE)' $$(go list ./... | grep -v '/host/guest/meter$$')

test-bench: tools ## tests of the bench module
	cd bench && $(GOTEST) ./...

lint: ## gofumpt, vet and staticcheck for both modules
	@.ci/tools libxml2
	@.ci/lint

fuzz: tools ## each fuzz target for FUZZTIME
	@.ci/fuzz $(FUZZTIME)

check: ## all that a change must pass
	@.ci/run

CHAOS ?=

chaos: tools ## load under 25 kinds of faults, 40 s each, with a checker; CHAOS passes flags, such as CHAOS="-for 5s -only killed"
	go run ./internal/chaos $(CHAOS)

bench: tools ## the table of speeds against peers; BENCH passes flags, such as BENCH="-o json"
	cd bench && go run . $(BENCH)

GUEST ?= Metering|Stops|Triage
ROUNDS ?= 25

bench-guest: ## what metering costs guests and when they are stopped; GUEST=Stops is one table of three, ROUNDS=5 a quick look
	go test -run '^$$' -bench '^Benchmark($(GUEST))$$' -benchtime $(ROUNDS)x -timeout 30m ./host/guest
