package segment

import (
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
)

// CheckBlock returns an error if a block does not hold records of the part of
// that name. It knows nothing of parts that hold no records.
func CheckBlock(part string, block []byte) error {
	switch part {
	case GeneratePart:
		return checkBlock[crawldb.Datum](block)
	case FetchPart:
		return checkBlock[Visit](block)
	case ContentPart:
		return checkBlock[page.Content](block)
	case ParseTextPart:
		return checkBlock[Text](block)
	case ParseDataPart:
		return checkBlock[Data](block)
	case ParsePart:
		return checkBlock[Parse](block)
	case EventPart:
		return checkBlock[Event](block)
	}
	return nil
}

func checkBlock[T Record](block []byte) error {
	dec, err := newDecoder()
	if err != nil {
		return err
	}
	defer dec.close()
	_, err = decodeBlock[T](dec, block)
	return err
}
