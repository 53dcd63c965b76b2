package httpapi

import "github.com/recrawl/recrawl"

type consumerList struct {
	Consumers []recrawl.ConsumerStatus `json:"consumers"`
	MayDrop   bool                     `json:"-"`
}

func (h *Handler) consumers(q *request) (any, error) {
	all, err := h.o.Crawler.Consumers(q.Context())
	if err != nil {
		return nil, err
	}
	return consumerList{all, q.may(ActionDropConsumer)}, nil
}
