module github.com/recrawl/recrawl/parse/extract

go 1.26.0

require (
	github.com/JohannesKaufmann/html-to-markdown/v2 v2.5.2
	github.com/recrawl/recrawl v0.0.0-00010101000000-000000000000
	golang.org/x/net v0.62.0
)

require (
	github.com/JohannesKaufmann/dom v0.3.1 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace github.com/recrawl/recrawl => ../..
