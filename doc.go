// Package recrawl is an embeddable crawler that keeps coming back: Apache
// Nutch's crawl cycle in one Go process. A service gives it a place to keep its
// crawl db and gets a polite, persistent crawl: seeds in, pages and changes out,
// for years, across kill -9.
//
//		seeds ──▶ inject ─┐                                                   ┌─▶ invert ─▶ linkdb
//		                  ▼                                                   │
//		              crawldb ──▶ generate ──▶ segment ──▶ fetch ──▶ segment ─┼─▶ OnPage, index
//		                  ▲            ▲ schedule, scoring, urlfilter  ▲      │
//		                  │            └───────────────────────────────┤      │
//		                  └──────────────────── update ◀───────────────┼──────┘
//		                                                    hostdb ────┘ (politeness, robots.txt, host statistics)
//
//	 1. Package inject turns seed lines into records of the crawl db.
//	 2. Package crawldb keeps one record for every URL ever heard of: its status,
//	    when it is due, how often it changes, its score, its signature.
//	 3. Package generate takes the due records, best first and within limits for
//	    each host, leases them, and writes them as the fetch list of a new segment.
//	 4. Package fetch visits the list politely, many hosts at once, and writes what
//	    came back into the same segment.
//	 5. Package update folds the segment into the crawl db, exactly once, whatever
//	    dies in between.
//	 6. Package linkdb turns outlinks round into inlinks with anchors.
//	 7. Policies decide and never do IO: schedule (when), scoring (in what order),
//	    urlfilter (what at all, and in which spelling), signature (has it changed).
//	 8. Adapters do IO and read foreign bytes: protocol, robots, parse.
//	 9. This package wires one round and the endless loop ([Crawler]); nothing
//	    imports it.
//
// Everything can be replaced: [Stores] says where things are kept, [Options] what
// decides. The stages are functions that can be called without this package.
package recrawl
