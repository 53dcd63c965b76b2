// Package rows reads rows of the tables of a pebblestore from the engine: in pages, at keys in
// ascending order, joined with those of another table, and as of one moment. It does not know
// what the rows mean, and holds no lock of the store. Start with [Page] and [Cursor].
package rows
