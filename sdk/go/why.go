package goqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"google.golang.org/grpc/codes"
)

const whyBytesMax = 16 << 20

// Where is where a message is, and why.
type Where struct {
	// State in one word, as in docs/journeys.md, and in a sentence.
	State   string       `json:"state"`
	Answer  string       `json:"answer"`
	TraceID string       `json:"trace_id"`
	Groups  []GroupState `json:"groups"`
}

// GroupState is how far one group is with a message.
type GroupState struct {
	Group  string `json:"group"`
	State  string `json:"state"`
	Answer string `json:"answer"`
}

// Why tells where a message is and why it is not delivered yet, for every group. It asks over HTTP: the client needs
// WithHTTP.
func (c *Client) Why(ctx context.Context, place Place) (Where, error) {
	var where Where
	if c.options.http == "" {
		return where, errors.New("goqueue: Why asks over HTTP; make the client with WithHTTP")
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	path := fmt.Sprintf("%s/v1/topics/%s/partitions/%d/messages/%d/why", c.options.http, url.PathEscape(place.Topic), place.Partition, place.Offset)
	for attempt := 0; ; attempt++ {
		err := c.get(ctx, path, &where)
		if !errors.Is(err, ErrUnavailable) || attempt+1 >= c.options.retry.Max || !c.options.retry.sleep(ctx, attempt) {
			return where, err
		}
	}
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if c.options.apiKey != "" {
		request.Header.Set("Authorization", "Bearer "+c.options.apiKey)
	}
	if c.options.tenant != "" {
		request.Header.Set("X-GoQueue-Tenant", c.options.tenant)
	}
	reply, err := c.http.Do(request)
	if err != nil {
		return &Error{Status: codes.Unavailable, Message: err.Error()}
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, whyBytesMax))
	if err != nil {
		return &Error{Status: codes.Unavailable, Message: err.Error()}
	}
	if reply.StatusCode == http.StatusOK {
		return json.Unmarshal(body, into)
	}
	var told struct{ Error, Code string }
	_ = json.Unmarshal(body, &told) // what is no JSON is told by its status
	return &Error{Status: httpStatuses[reply.StatusCode], Code: told.Code, Message: told.Error}
}

var httpStatuses = map[int]codes.Code{
	http.StatusBadRequest:         codes.InvalidArgument,
	http.StatusUnauthorized:       codes.Unauthenticated,
	http.StatusForbidden:          codes.PermissionDenied,
	http.StatusNotFound:           codes.NotFound,
	http.StatusTooManyRequests:    codes.ResourceExhausted,
	http.StatusServiceUnavailable: codes.Unavailable,
	http.StatusGatewayTimeout:     codes.DeadlineExceeded,
}
