// Package pgstore keeps a crawl in PostgreSQL: the crawl db, the host db, the link db and the
// segments, in one schema of a database. [Open] opens a crawl, or makes it; several crawls
// may share a database. One process at a time has a crawl open for writing; [OpenGroups] opens one
// that is divided among the groups of several processes. It does not run the server.
//
// # Tables
//
//	schema_version  the version of the schema, and the oldest version of this package that can use it
//	crawl_group     how often the crawl was opened for writing: each change checks that it was not opened again
//	crawl_lease     whether a process has the crawl open for writing, and its signs of life
//	crawl_update    how many sets of changes were applied to the crawl db
//	mark            the marks of the stages
//	page            a record of the crawl db in each row: its key, its encoding, and what the due index needs
//	host_state      whether the host db was closed in order, and when it last changed
//	host            a host in each row; its robots.txt files and statistics are a column of their own
//	link            the inlinks of a page in each row
//	part, block     the parts of segments and their blocks, with checksums
//
// In a crawl that is divided, these are the tables of group 0, and its schema has in addition
//
//	group_table     the division of the crawl
//	group_lease     the owner of each group, and the epoch of its lease: the opening in crawl_group of its schema
//	worker          the workers and their signs of life
//	outside_mark    rows that processes without a lease have posted for groups
//
// Group N has the same tables in the schema CRAWL_gN, but for the hosts, which all groups share.
//
// Any string is a URL, and an index entry has at most 2,704 bytes. So rows are indexed by the
// first 2,000 bytes of [crawldb.Key] and, if there are more, the SHA-256 of the others, which
// are in the column tail. All keys are bytes (bytea), whose order is that of the contract.
//
// The column due of a page is the time in milliseconds from which on it is due: that of its
// next fetch, or the end of its lease if that is later. The column level is the eighth of an
// octave of its priority. The index (level, due, tie) yields due records best level first;
// tie, a hash of the key, puts records with the same time in an order in which a query can go on.
// So this shows what is due, best first:
//
//	SELECT convert_from(key, 'UTF8'), priority FROM page
//	WHERE due <= extract(epoch FROM now()) * 1000 ORDER BY level DESC, due LIMIT 20
//
// # Rules
//
// Every transaction ends before a call returns, holds no lock while the caller's code runs, and
// is durable when it is committed (synchronous_commit). Scans read pages by key and hold no
// cursor. A call that loses its connection is repeated for up to [Options].Patience, so a
// restart or a failover is a pause. If the connection is lost during COMMIT, the number in
// crawl_update tells whether the changes were applied; they are applied once.
//
// The SQL is that of PostgreSQL 13 and later without advisory locks, LISTEN, temporary tables and
// session state, and transactions that the server asks to repeat (SQLSTATE 40001) are repeated. It should
// run on CockroachDB, YugabyteDB and Citus; that is not tested.
package pgstore
