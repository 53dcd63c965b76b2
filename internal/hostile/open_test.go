package hostile_test

// A gap is a part of the catalogue that no row checks.
type gap struct{ id, what, why string }

func open() []gap {
	return []gap{
		{"W8", "more workers than files", "a fetch for which no file becomes free within 0.1 s ends with an error and is resumed by the next run; it does not wait longer"},
		{"C5", "slow regular expressions", "all are RE2; checked in package urlfilter"},
		{"C11", "names of exported files", "nothing is exported under names from the web"},
		{"P", "kills, power loss, full disks, damage", "needs no server; checked in stores, update and cmd/recrawl"},
	}
}
