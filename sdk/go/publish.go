package goqueue

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
)

// Publish returns when the message is as durable as its topic asks for. With a DedupID it is made again when the node
// cannot be reached; without one, an answer that was lost is an error that is ErrMaybeStored.
func (c *Client) Publish(ctx context.Context, topic string, value []byte, given ...MessageOption) (Receipt, error) {
	request := newRequest(topic, value, given)
	told, err := ask(ctx, c, request.DedupId != nil, c.publishes().Publish, request)
	if err != nil {
		return Receipt{}, maybeStored(err)
	}
	return receiptOf(topic, told), nil
}

// maybeStored marks the errors after which nobody knows. While there is no connection a call waits for one and is not
// sent, so that of a call that was never sent only the deadline is told.
func maybeStored(err error) error {
	var told *Error
	if errors.As(err, &told) && told.Code == "" {
		switch told.Status {
		case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
			return fmt.Errorf("%w: %w", ErrMaybeStored, err)
		}
	}
	return err
}
