package goqueue

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/goqueue/goqueue/sdk/go/pb"
)

// Far away: a slow machine is not a failure.
const deadline = time.Minute

// strange is a node in a trouble that a real one cannot be brought into at will.
type strange struct {
	pb.UnimplementedPublishServiceServer
	pb.UnimplementedConsumeServiceServer
	pb.UnimplementedAckServiceServer
	streams atomic.Int32
	publish func(grpc.BidiStreamingServer[pb.PublishStreamRequest, pb.PublishStreamResponse]) error
}

func (s *strange) PublishStream(stream grpc.BidiStreamingServer[pb.PublishStreamRequest, pb.PublishStreamResponse]) error {
	s.streams.Add(1)
	return s.publish(stream)
}

func (s *strange) Subscribe(_ *pb.SubscribeRequest, stream grpc.ServerStreamingServer[pb.ConsumeResponse]) error {
	leased := &pb.Message{Topic: "t", ReceiptHandle: "r"}
	messages := &pb.ConsumeResponse{Event: &pb.ConsumeResponse_Messages{Messages: &pb.MessageBatch{Messages: []*pb.Message{leased}}}}
	if err := stream.Send(messages); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (s *strange) ExtendVisibility(context.Context, *pb.ExtendVisibilityRequest) (*pb.ExtendVisibilityResponse, error) {
	return &pb.ExtendVisibilityResponse{}, nil
}

func silent(stream grpc.BidiStreamingServer[pb.PublishStreamRequest, pb.PublishStreamResponse]) error {
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
}

func stored(stream grpc.BidiStreamingServer[pb.PublishStreamRequest, pb.PublishStreamResponse]) error {
	for {
		request, err := stream.Recv()
		if err != nil {
			return err
		}
		answer := &pb.PublishStreamResponse{CorrelationId: request.CorrelationId}
		for range request.Batch {
			answer.Batch = append(answer.Batch, &pb.PublishResponse{})
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

func serve(t *testing.T, node *strange, given ...grpc.ServerOption) *Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(given...)
	pb.RegisterPublishServiceServer(server, node)
	pb.RegisterConsumeServiceServer(server, node)
	pb.RegisterAckServiceServer(server, node)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return dial(t, listener.Addr().String())
}

func dial(t *testing.T, address string) *Client {
	t.Helper()
	client, err := Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func send(t *testing.T, p *Producer, value []byte, given ...MessageOption) <-chan Result {
	t.Helper()
	result, err := p.Send(context.Background(), value, given...)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func decided(t *testing.T, result <-chan Result) error {
	t.Helper()
	select {
	case told := <-result:
		return told.Err
	case <-time.After(deadline):
		t.Fatal("a message was never decided")
		return nil
	}
}

func TestACloseThatIsCutShortDecidesAllMessages(t *testing.T) {
	producer := dial(t, "127.0.0.1:1").Producer("t", Linger(0)) // nobody listens there
	var results []<-chan Result
	for range 5000 {
		results = append(results, send(t, producer, nil))
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := producer.Close(ended); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for _, result := range results {
		if err := decided(t, result); err == nil {
			t.Fatal("nobody has stored it")
		}
	}
}

func TestADeliveryTimeoutHoldsForANodeThatIsSilent(t *testing.T) {
	producer := serve(t, &strange{publish: silent}).Producer("t", Linger(0), DeliveryTimeout(50*time.Millisecond))
	if err := decided(t, send(t, producer, nil)); !errors.Is(err, ErrTimeout) {
		t.Fatal(err)
	}
}

func TestARefusalIsNotAskedForAgainAndAgain(t *testing.T) {
	node := &strange{publish: func(stream grpc.BidiStreamingServer[pb.PublishStreamRequest, pb.PublishStreamResponse]) error {
		_, _ = stream.Recv()
		return status.Error(codes.PermissionDenied, "not you")
	}}
	producer := serve(t, node).Producer("t", Linger(0))
	if err := decided(t, send(t, producer, nil, DedupID("a"))); !errors.Is(err, ErrDenied) {
		t.Fatal(err)
	}
	if streams := node.streams.Load(); streams != 1 {
		t.Fatalf("%d streams", streams)
	}
}

func TestAMessageThatIsTooLargeFailsAlone(t *testing.T) {
	client := serve(t, &strange{publish: stored}, grpc.MaxRecvMsgSize(1<<20))
	producer := client.Producer("t", Linger(20*time.Millisecond), DeliveryTimeout(deadline))
	before := send(t, producer, make([]byte, 500<<10), DedupID("a"))
	large := send(t, producer, make([]byte, 2<<20), DedupID("b"))
	after := send(t, producer, make([]byte, 500<<10), DedupID("c"))
	for _, result := range []<-chan Result{before, after} {
		if err := decided(t, result); err != nil {
			t.Fatal(err)
		}
	}
	var told *Error
	if err := decided(t, large); !errors.As(err, &told) || told.Status != codes.ResourceExhausted {
		t.Fatal(err)
	}
}

func TestAJobHearsThatItWasHeldForTooLong(t *testing.T) {
	lost := make(chan error, 10)
	told := OnLost(func(_ *Job, err error) { lost <- err })
	worker := serve(t, &strange{}).Worker("t", "g", Lease(60*time.Millisecond), Hold(10*time.Millisecond), told)
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	err := worker.Run(ctx, func(ctx context.Context, _ *Job) error {
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, ErrLeaseLost) {
			t.Error(cause)
		}
		cancel()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-lost; !errors.Is(err, ErrLeaseLost) || len(lost) > 0 {
		t.Fatal(err, "and", len(lost), "more")
	}
}
