# Targets: make check, test, race, fuzz, cover, bench, demo, release V=v0.1.0.
.PHONY: check test race fuzz cover bench demo release
FUZZTIME ?= 10s

check:
	.ci/run

test:
	go test work

race:
	go test -race work

fuzz: # every target of the workspace in turn
	@grep -rl --include='*_test.go' '^func Fuzz' . | while read -r f; do \
		for t in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$f); do \
			echo "$$f $$t" && go test -run='^$$' -fuzz="^$$t\$$" -fuzztime=$(FUZZTIME) ./$$(dirname $$f) || exit 1; \
		done; done

cover:
	go test -coverprofile=cover.out ./... && go tool cover -func=cover.out | tail -n 1

bench:
	go test -run='^$$' -bench=. -benchmem work
	go run ./bench web
	go run ./bench all -urls 1000000

demo:
	go run ./cmd/recrawl demo

release: # tags, but never pushes
	cd internal/tools && GOWORK=off go run ./release $(V)
