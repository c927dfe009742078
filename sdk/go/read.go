package goqueue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/goqueue/goqueue/sdk/go/pb"
)

const streamsOfConnection = 90 // of 100: acknowledgements and publishes need some

type reading struct {
	request  pb.ConsumeRequest
	isLatest bool
}

// ReadOption is where a reading begins and ends.
type ReadOption func(*reading)

// From begins with the first message at or after a time.
func From(t time.Time) ReadOption {
	return func(r *reading) {
		r.request.StartPosition = pb.ConsumeStartPosition_CONSUME_START_POSITION_TIMESTAMP
		r.request.StartTimestamp = timestamppb.New(t)
	}
}

// Latest begins with the next message.
func Latest() ReadOption { return func(r *reading) { r.isLatest = true } }

// FromOffset begins at an offset; use it with OfPartitions.
func FromOffset(offset int64) ReadOption {
	return func(r *reading) {
		r.request.StartPosition = pb.ConsumeStartPosition_CONSUME_START_POSITION_OFFSET
		r.request.StartOffset = offset
	}
}

// OfPartitions reads these only.
func OfPartitions(numbers ...int32) ReadOption {
	return func(r *reading) { r.request.Partitions = numbers }
}

// UntilEnd ends when all that is there has been read; without it the reading goes on with what comes.
func UntilEnd() ReadOption { return func(r *reading) { r.request.UntilEnd = true } }

// Read reads a topic as a stream, beginning with the oldest message unless it is told otherwise, and settles nothing. When
// a connection breaks it goes on where it was: each message comes once, and those of a partition in their order. It
// knows the partitions that the topic has when it begins.
func (c *Client) Read(ctx context.Context, topic string, given ...ReadOption) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		r := &reading{}
		r.request.Topic = topic
		for _, each := range given {
			each(r)
		}
		found := make(chan Message, 100)
		refused := make(chan error, 1)
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		if err := c.readEach(ctx, r, found, refused, &all); err != nil {
			yield(Message{}, err)
			return
		}
		ended := make(chan struct{})
		go func() { all.Wait(); close(ended) }()
		for {
			select {
			case message := <-found:
				if !yield(message, nil) {
					return
				}
				continue
			default:
			}
			select {
			case message := <-found:
				if !yield(message, nil) {
					return
				}
			case err := <-refused:
				yield(Message{}, err)
				return
			case <-ctx.Done():
				yield(Message{}, ctx.Err())
				return
			case <-ended:
				if len(found) == 0 && len(refused) == 0 {
					return
				}
			}
		}
	}
}

func (c *Client) readEach(ctx context.Context, r *reading, found chan<- Message, refused chan<- error, all *sync.WaitGroup) error {
	topic, err := c.Topic(ctx, r.request.Topic)
	if err != nil {
		return err
	}
	numbers := r.request.Partitions
	if numbers == nil {
		for number := range topic.Partitions {
			numbers = append(numbers, int32(number))
		}
	}
	if most := streamsOfConnection * len(c.conns); len(numbers) > most {
		return fmt.Errorf("goqueue: %d partitions need a client with %d connections (WithConnections)", len(numbers), len(numbers)/streamsOfConnection+1)
	}
	for _, number := range numbers {
		if number < 0 || int(number) >= len(topic.Partitions) {
			return &Error{Status: codes.NotFound, Code: "PARTITION_NOT_FOUND", Message: fmt.Sprintf("there is no partition %d of %s", number, topic.Name)}
		}
		own := &pb.ConsumeRequest{
			Topic: topic.Name, Partitions: []int32{number}, StartPosition: r.request.StartPosition,
			StartOffset: r.request.StartOffset, StartTimestamp: r.request.StartTimestamp, UntilEnd: r.request.UntilEnd,
		}
		if r.isLatest {
			goOn(own, topic.Partitions[number].End)
		}
		all.Go(func() {
			if err := c.readOne(ctx, own, found); err != nil && ctx.Err() == nil {
				select {
				case refused <- err:
				default:
				}
			}
		})
	}
	return nil
}

func goOn(request *pb.ConsumeRequest, offset int64) {
	request.StartPosition = pb.ConsumeStartPosition_CONSUME_START_POSITION_OFFSET
	request.StartOffset, request.StartTimestamp = offset, nil
}

// readOne reads a partition, over as many connections as it takes.
func (c *Client) readOne(ctx context.Context, request *pb.ConsumeRequest, found chan<- Message) error {
	for attempt := 0; ; attempt++ {
		err := func() error {
			stream, err := c.reads().Consume(c.Outgoing(ctx), request)
			for err == nil {
				var event *pb.ConsumeResponse
				if event, err = stream.Recv(); err != nil {
					break
				}
				attempt = 0
				for _, each := range event.GetMessages().GetMessages() {
					select {
					case found <- messageOf(each):
						goOn(request, each.Offset+1)
					case <-ctx.Done():
						return ctx.Err()
					}
				}
			}
			return err
		}()
		if isEnd(err) || ctx.Err() != nil {
			return nil
		}
		told := errorOf(err)
		if !errors.Is(told, ErrUnavailable) {
			return told
		}
		if !c.options.retry.sleep(ctx, attempt) {
			return nil
		}
	}
}
