// Package hostile has no code of its own: its tests are a web of hostile or badly
// broken servers, which they crawl with the whole stack beside an honest site.
//
// A row is one kind of trouble, named as in docs/robustness.md, with a server for each
// input and a figure that must hold. All rows share six budgets:
//
//	B1  memory stays under 96 MiB plus two bodies for each worker
//	B2  no visit takes longer than its time limit plus a second
//	B3  goroutines, connections and open files are back where they were
//	    two seconds after the crawl
//	B4  the honest site is visited at 90 % of its rate, or better
//	B5  everything stored reads back and is consistent
//	B6  each URL has a record, and an outcome that says what happened
//
// docs/robustness.md is written by
//
//	go test ./internal/hostile -run TestRobustness -update
//
// and what was measured is printed by go test ./internal/hostile -v.
package hostile
