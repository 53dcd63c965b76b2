// Package httpapi shows a crawl in a browser and as JSON, and accepts changes from authorized users. It is
// an [http.Handler] that a service mounts beside its own pages. It makes no rounds: those are of
// the service, or of the command. Start with New.
package httpapi
