package httpapi

import "net/http"

// routes are all paths of a handler.
func (h *Handler) routes() []route {
	get := func(path, template, title, summary string, answer func(*request) (any, error), result any, params ...param) route {
		return route{http.MethodGet, path, ActionRead, summary, params, answer, result, template, title}
	}
	post := func(path string, a Action, summary string, answer func(*request) (any, error), params ...param) route {
		return route{http.MethodPost, path, a, summary, params, answer, result{}, "", ""}
	}
	after := param{"after", "where the next part of the list begins"}
	return []route{
		get("/{$}", "overview", "Overview", "What the crawl is doing and how it stands", h.overview, overview{},
			param{"refresh", "seconds after which a browser loads the page again, at least 5"}),
		get("/hosts", "hosts", "Hosts", "Hosts with pages in the crawl, in the order of their domains", h.hosts, hostList{},
			param{"q", "a domain: only it and the hosts below it"}, after),
		get("/hosts/{host}", "host", "Host", "What is known of one host", h.host, hostStory{}),
		get("/urls", "urls", "URLs", "Records of the crawl db, in the order of their keys", h.urls, urlList{},
			param{"q", "the beginning of a URL, or a domain"}, param{"status", "only records with this status, such as fetched"},
			param{"only", "due, or seeds"}, after),
		get("/url", "story", "URL", "One URL: why it is or is not fetched next, visits, links, last change", h.story, story{},
			param{"u", "the URL"}, param{"before", "a segment: the visits before it"}, param{"text", "1: with the whole text of the page"},
			param{"markdown", "1: with the page as Markdown, if the handler can make it"}),
		get("/search", "search", "Search", "Pages by their words", h.search, searchResult{}, param{"q", "words, all of which a page has"}, param{"limit", "at most 100; otherwise 20"}),
		get("/changes", "changes", "Changes", "Changes that visits have found, the latest segment first", h.changes, changeList{},
			param{"since", "a time: none that was found in a segment before it"}, param{"q", "the beginning of a URL, or a domain"},
			param{"kind", "new, changed, moved, gone or refused"}, after),
		get("/schedule", "schedule", "Schedule", "Budget, freshness, and what other budgets would achieve", h.schedule, scheduleReport{},
			param{"budget", "visits a day, to estimate what they would achieve"}),
		get("/consumers", "consumers", "Consumers", "Consumers of the change feed, and how far they are behind", h.consumers, consumerList{}),
		get("/controls", "controls", "Controls", "What the user of the request may change", h.controls, controls{}),

		post("/seeds", ActionAddSeeds, "Add seeds", h.addSeeds, param{"urls", "URLs, one a line"}),
		post("/fetch", ActionFetch, "Fetch URLs in the next round, due or not", h.fetchNow, param{"urls", "URLs, one a line"}),
		post("/signal", ActionSignal, "Say that pages have changed", h.signal, param{"urls", "URLs, one a line"}, param{"at", "when they changed; otherwise now"}),
		post("/hosts/{host}/pause", ActionPauseHost, "Keep requests from a host", h.pauseHost, param{"minutes", "for how long, at most 525600; otherwise 60"}),
		post("/hosts/{host}/resume", ActionPauseHost, "End the pause of a host", h.resumeHost),
		post("/pause", ActionPauseHost, "Keep requests from a host that the body names", h.pauseHost, param{"host", "the host"}, param{"minutes", "for how long, at most 525600; otherwise 60; 0 ends a pause"}),
		post("/reload", ActionReloadRules, "Read the files of URL rules again", h.reloadRules),
		post("/consumers/{name}/drop", ActionDropConsumer, "Remove a consumer of the change feed", h.dropConsumer),
	}
}
