.PHONY: build test test-cross compare-criteria chaos cross lint fmt bench fuzz engine b3sum clean

build:
	CGO_ENABLED=0 go build -o bin/ggufreap ./cmd/ggufreap

# All tests. The engine tests run models in llama.cpp, which "engine" installs once, and
# the recipe of manifest/IDENTITY.md runs b3sum.
test: engine b3sum
	go test ./...
	cd testdata/peer && go test ./...

# Plans and releases on emulated processors of other kinds, with qemu-user, which is
# installed when it is missing.
test-cross:
	@sh .ci/test-cross

# Kills the program hundreds of times, fills disks, breaks reads and writes, and prints
# what it survived. Some sessions mount file systems and need root.
chaos:
	@.ci/chaos

# The systems that the program is built for, and the tests that run as 32-bit programs.
cross:
	@.ci/cross

# How far pruned models are from full ones, by criterion and keep count, in llama.cpp.
compare-criteria: engine
	go test -count=1 -v -run TestCriteriaByDivergence ./reap -args -all-counts

lint:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt would change:"; echo "$$unformatted"; exit 1; }
	go vet ./...
	go tool staticcheck ./...

fmt:
	gofmt -w .

# The llama.cpp CPU libraries for the engine tests, in .engine.
engine:
	@sh .ci/engine

# The BLAKE3 counterpart of sha256sum.
b3sum:
	@sh .ci/b3sum

# The commands on 5 GB beside cp, sync and openssl, and on sparse models of the real size;
# Go benchmarks of the hot paths; and the time to read large headers beside that of another
# reader.
bench:
	go run ./cmd/bench
	go test -run '^$$' -bench . -benchmem ./...
	cd testdata/peer && go run ./compare

# Each fuzz target for FUZZTIME.
FUZZTIME ?= 1m
fuzz:
	@for pkg in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$pkg || exit 1; \
		done; \
	done

clean:
	rm -rf bin .engine ggufreap-demo
