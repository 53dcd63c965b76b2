module github.com/recrawl/recrawl/protocol/chromeproto

go 1.26.0

replace github.com/recrawl/recrawl => ../..

require (
	github.com/recrawl/recrawl v0.0.0
	golang.org/x/net v0.62.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	golang.org/x/text v0.43.0 // indirect
)
