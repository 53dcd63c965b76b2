// Package recrawl is an embeddable crawler that keeps coming back: Apache
// Nutch's crawl cycle in one Go process. A service gives it a place to keep its
// crawl db and gets a polite, persistent crawl: seeds in, pages and changes out,
// for years, across kill -9. It renders no JavaScript and runs on one machine.
// Start with [New], [Crawler.Inject] and [Crawler.Run].
//
//		seeds ──▶ inject ─┐                                                   ┌─▶ invert ─▶ linkdb
//		                  ▼                                                   │
//		              crawldb ──▶ generate ──▶ segment ──▶ fetch ──▶ segment ─┼─▶ OnPage, index
//		                  ▲            ▲ schedule, scoring, urlfilter  ▲      │
//		                  │            └───────────────────────────────┤      │
//		                  └──────────────────── update ◀───────────────┼──────┘
//		                                                    hostdb ────┘ (politeness, robots.txt, host statistics)
//
//	 1. Package inject turns seeds into records of the crawl db.
//	 2. Package crawldb keeps one record for every URL: its status, when it is due,
//	    how often it changes, its score, its signature.
//	 3. Package generate selects due records, best first and within limits for each
//	    host, leases them, and writes the fetch list of a new segment.
//	 4. Package fetch visits the list politely, many hosts at once, parses the pages,
//	    divides the importance of each page among its links, and writes the results
//	    into the same segment.
//	 5. Package update folds the segment into the crawl db, exactly once, even if the
//	    process dies in between.
//	 6. Package linkdb turns outlinks into inlinks with anchors.
//	 7. Policies decide and do no IO: schedule (when), scoring (in what order),
//	    urlfilter (which URLs), signature (has it changed).
//	 8. Adapters do IO and read foreign bytes: protocol, robots, parse.
//	 9. This package makes rounds of the stages and an endless run of rounds
//	    ([Crawler]); no stage and no policy imports it.
//
// Everything can be replaced: [Stores] says where things are kept, [Options] what
// decides. The stages are functions that can be called without this package.
package recrawl
