.DEFAULT_GOAL := build
SHELL := bash
.SHELLFLAGS := -eo pipefail -c

.PHONY: help
help: ## show this list
	@grep -hE '^[a-z0-9-]+:.* ## ' $(MAKEFILE_LIST) | sort | sed -E 's/^([a-z0-9-]+):.* ## /\1\t/' | expand -t 18

.PHONY: build
build: ## the program, static, and ggufreap-engine beside it, in bin
	CGO_ENABLED=0 go build -o bin/ ./cmd/ggufreap ./cmd/ggufreap-engine

.PHONY: install
install: ## the program, static, and ggufreap-engine, where go install puts them
	CGO_ENABLED=0 go install ./cmd/ggufreap ./cmd/ggufreap-engine
	@echo "installed in $$(go env GOBIN | grep . || echo "$$(go env GOPATH)/bin")"

.PHONY: dist
dist: ## archives for Linux, macOS and Windows with SHA256SUMS, in dist
	@.ci/dist

.PHONY: test-dist
test-dist: ## that two clones give the same archives, and that one works
	@.ci/test-dist

# The engine tests run models in llama.cpp, which "engine" installs once; "tools" installs the
# programs that others compare with.
.PHONY: test
test: engine tools ## all tests, about three minutes on two quiet cores
	@echo "running the tests of the libraries and commands, then those beside other readers of GGUF:"
	@echo "about three minutes on two quiet cores, a minute more when all is to be compiled"
	go test ./...
	cd testdata/peer && go test ./...

.PHONY: test-servers
test-servers: ## models served by nginx, rclone and python over HTTP
	@sh .ci/test-servers

# Emulation is qemu's user mode, which is installed when it is missing.
.PHONY: test-cross
test-cross: ## plans and releases on emulated processors of other kinds
	@sh .ci/test-cross

# As root, with Slurm, GNU parallel and Snakemake, which are installed when they are missing.
.PHONY: test-jobs
test-jobs: ## the Kubernetes Jobs of CLUSTER.md, decoded strictly and run for each index
	cd testdata/kubernetes && go test ./...

.PHONY: test-cluster
test-cluster: ## the scripts of CLUSTER.md, run by Slurm, parallel, Snakemake
	@.ci/test-cluster

# Releases that were changed and given a fresh pin and list: all kinds that are known, and
# single bits of all regions.
.PHONY: forgeries
forgeries: ## how many kinds of forged releases verify finds
	go test -count=1 -v -run '^TestForgeries$$' ./cmd/ggufreap/tests/proof | grep -e 'found' -e '^ok' -e FAIL

.PHONY: flips
flips: ## how many of 10,000 flipped bits verify finds, by region; about eight minutes
	go test -count=1 -v -timeout 60m -run '^TestFlips$$' ./cmd/ggufreap -flips 10000 | grep -v '^==='

.PHONY: hostile
hostile: ## what documents of 64 MiB, and files that are made to do harm, cost; two minutes
	go test -count=1 -v ./cmd/ggufreap/tests/documents -all | grep -e '_test.go' -e '^ok' -e FAIL
	go test -count=1 -v ./cmd/ggufreap/tests/hostile | grep -v '^==='

# Some sessions mount file systems and need root.
.PHONY: chaos
chaos: ## kill the program hundreds of times, fill disks, break reads and writes
	@.ci/chaos

.PHONY: cross
cross: ## compile for all systems; tests as a 32-bit program
	@.ci/cross

.PHONY: compare-criteria
compare-criteria: engine ## how far a trained model's prunings are from it, by criterion: ten minutes
	go run ./cmd/criteria

.PHONY: lint
lint: ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt would change:"; echo "$$unformatted"; exit 1; }
	go vet ./...
	go tool staticcheck ./...

.PHONY: fmt
fmt: ## format the code
	gofmt -w .

.PHONY: engine
engine: ## install the llama.cpp libraries for tests, in .engine
	@sh .ci/engine

.PHONY: tools
tools: ## install b3sum, jq, openssl and ssh-keygen, which tests compare with
	@sh .ci/tools

.PHONY: test-report
test-report: ## pages of report in headless Chromium, with screenshots
	@.ci/test-report

# The library brings 80 modules, so the tests with it are a module of their own.
.PHONY: test-sign
test-sign: tools ## signatures against sigstore-go, ssh-keygen, openssl and the specification's vectors
	cd testdata/sigstore && go test -count=1 -v ./... | grep -v -e '^=== ' -e '^ *--- PASS'

# The commands on 5 GB beside cp, sync and openssl, and on sparse models of the real size;
# Go benchmarks of the hot paths; and the time to read large headers beside that of another
# reader.
.PHONY: bench
bench: ## benchmarks, and ratios to other programs in the same run
	go run ./cmd/bench
	go test -run '^$$' -bench . -benchmem ./...
	cd testdata/peer && go run ./compare

FUZZTIME ?= 1m
.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (1m)
	@for pkg in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg || exit 1; \
		done; \
	done

# CHANGES of one operator each, drawn by SEED from the files of gguf, reap and manifest that
# decide. What no test of the package notices is listed.
CHANGES ?= 60
SEED ?= 1
.PHONY: mutate
mutate: engine ## how many small changes of the code the tests notice; takes long
	go run ./testdata/mutate -n $(CHANGES) -seed $(SEED)

.PHONY: clean
clean: ## remove what was built and installed here
	rm -rf bin dist .engine ggufreap-demo
