package httpapi

import "time"

type consumerList struct {
	Consumers []consumerState `json:"consumers"`
	MayDrop   bool            `json:"-"`
}

// consumerState is how far a consumer of the change feed is behind.
type consumerState struct {
	Name         string    `json:"consumer"`
	Registered   time.Time `json:"registered"`
	Acknowledged time.Time `json:"acknowledged,omitzero"`
	EveryVisit   bool      `json:"every_visit"`
	Segments     int       `json:"segments_behind"`
	Events       int       `json:"events_behind"`
	Bytes        int64     `json:"bytes_behind"`
	Oldest       time.Time `json:"oldest,omitzero"` // when the first of these events was published
	Snapshot     bool      `json:"snapshot"`
	Lapsed       time.Time `json:"lapsed,omitzero"`
	Lapses       int       `json:"lapses"`
}

func (h *Handler) consumers(q *request) (any, error) {
	all, err := h.o.Crawler.Consumers(q.Context())
	if err != nil {
		return nil, err
	}
	list := consumerList{Consumers: []consumerState{}, MayDrop: q.may(ActionDropConsumer)}
	for _, c := range all {
		list.Consumers = append(list.Consumers, consumerState{
			c.Name, c.Registered, c.Acknowledged, c.EveryVisit, c.Segments, c.Events, c.Bytes, c.Oldest, c.Snapshot, c.Lapsed, c.Lapses})
	}
	return list, nil
}
