module github.com/recrawl/recrawl/parse/documents

go 1.26.0

require (
	github.com/klippa-app/go-pdfium v1.21.4
	github.com/recrawl/recrawl v0.0.0
	github.com/tetratelabs/wazero v1.12.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/jolestar/go-commons-pool/v2 v2.1.2 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace github.com/recrawl/recrawl => ../..
