package crawldb

// DueInPasses is DueByScan with passes of a given size.
var DueInPasses = dueByScan
