package s3store

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Options are the settings of a store.
type Options struct {
	// Endpoint is the URL of the server, such as https://s3.eu-central-1.amazonaws.com or
	// http://127.0.0.1:9000; empty means https://s3.amazonaws.com.
	Endpoint string
	// Region is the region of the bucket; empty means that the server is asked.
	Region string
	// Bucket must exist. Prefix is put before the names of all objects, with a slash; it may be
	// empty.
	Bucket, Prefix string
	// Credentials sign the requests; nil makes them without a signature. The environment
	// is not read: credentials.NewStaticV4, NewFileAWSCredentials and NewIAM make them.
	Credentials *credentials.Credentials
	// PathStyle puts the bucket into the path of URLs and not into the host name, as servers
	// other than Amazon's often need. Without it, it is used where the endpoint is an address.
	PathStyle bool
	// ReadOnly opens a store that is changed elsewhere: Append and Remove return an error
	// that is ErrReadOnly.
	ReadOnly bool
	// PieceSize is about how many bytes of blocks one object has; zero means 4 MiB. A writer
	// keeps up to that many in memory until Sync.
	PieceSize int
	// Patience is how long a call repeats what failed in a way that may pass; zero means
	// five minutes.
	Patience time.Duration
	// Transport makes the requests; nil means one with limits for time.
	Transport http.RoundTripper
	// Logger receives repeated requests. Nil discards them.
	Logger *slog.Logger

	firstWait time.Duration // before a request is repeated; for tests
	attempt   time.Duration // limit of one request, for tests
}

// ParseURL makes options from s3://BUCKET/PREFIX, optionally with KEY:SECRET@ before the bucket. The
// query may have endpoint, region, style=path, credentials (a file in the format of
// Amazon's command) and profile (a section of that file; default "default").
func ParseURL(text string) (Options, error) {
	u, err := url.Parse(text)
	if err != nil {
		err = errors.Unwrap(err) // without the text, which may have a secret
	} else if u.Scheme != "s3" || u.Host == "" {
		err = errors.New("want s3://BUCKET/PREFIX")
	}
	if err != nil {
		return Options{}, fmt.Errorf("s3store: %w", err)
	}
	o := Options{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Options{}, fmt.Errorf("s3store: %w", err)
	}
	for name, values := range query {
		value := values[len(values)-1]
		switch name {
		case "endpoint":
			o.Endpoint = value
		case "region":
			o.Region = value
		case "style":
			if value != "path" {
				return Options{}, fmt.Errorf("s3store: style is %q, want path", value)
			}
			o.PathStyle = true
		case "credentials":
			o.Credentials = credentials.NewFileAWSCredentials(value, query.Get("profile"))
		case "profile":
		default:
			return Options{}, fmt.Errorf("s3store: unknown parameter %q; there are endpoint, region, style, credentials and profile", name)
		}
	}
	if u.User != nil {
		secret, _ := u.User.Password()
		o.Credentials = credentials.NewStaticV4(u.User.Username(), secret, "")
	}
	return o, nil
}
