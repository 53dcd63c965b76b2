module github.com/recrawl/recrawl/index/opensearch

go 1.26.0

require github.com/recrawl/recrawl v0.0.0

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace github.com/recrawl/recrawl => ../..
