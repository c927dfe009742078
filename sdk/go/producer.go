package goqueue

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/goqueue/goqueue/sdk/go/pb"
)

var (
	errClosed = errors.New("goqueue: the producer was closed")
	errLate   = &Error{Status: codes.DeadlineExceeded, Message: "no answer in time"}
)

// Result is what became of a message of a Producer.
type Result struct {
	Receipt
	Err error
}

// Producer sends messages in batches over one stream: a message costs a fraction of what Publish costs.
type Producer struct {
	client *Client
	topic  string
	// How long a batch waits for more, how many messages and bytes it has at most.
	linger        time.Duration
	batchMessages int
	batchBytes    int
	timeout       time.Duration
	isOnce        bool
	prefix        string

	slots   chan struct{}
	in      chan *posted
	end     context.CancelFunc
	ended   chan struct{}
	flushes sync.Mutex

	mutex    sync.Mutex
	number   uint64
	failed   int
	failure  error
	isClosed bool
}

type posted struct {
	request *pb.PublishRequest
	result  chan Result
}

// ProducerOption is how a Producer is told what is not as usual.
type ProducerOption func(*Producer)

// Linger sets how long a batch waits for more messages; 5 ms without it.
func Linger(d time.Duration) ProducerOption { return func(p *Producer) { p.linger = d } }

// MaxInFlight sets how many messages may be unanswered; Send waits beyond that. 10,000 without it.
func MaxInFlight(n int) ProducerOption {
	return func(p *Producer) { p.slots = make(chan struct{}, max(n, 1)) }
}

// DeliveryTimeout sets how long a message is tried for; 2 minutes without it.
func DeliveryTimeout(d time.Duration) ProducerOption { return func(p *Producer) { p.timeout = d } }

// Once gives each message a DedupID, so that what was not answered can be sent again after a broken connection and is
// stored once. The topic needs dedup.ms. Without Once such messages fail with ErrMaybeStored.
func Once() ProducerOption { return func(p *Producer) { p.isOnce = true } }

// Producer begins one. Close it in the end.
func (c *Client) Producer(topic string, given ...ProducerOption) *Producer {
	random := make([]byte, 12)
	rand.Read(random) // never fails
	ctx, cancel := context.WithCancel(context.Background())
	p := &Producer{
		client: c, topic: topic, linger: 5 * time.Millisecond, batchMessages: 500, batchBytes: 512 << 10,
		timeout: 2 * time.Minute, prefix: hex.EncodeToString(random) + "-", slots: make(chan struct{}, 10_000),
		end: cancel, ended: make(chan struct{}),
	}
	for _, each := range given {
		each(p)
	}
	p.in = make(chan *posted, cap(p.slots)) // has room for all that have a slot, so that Send never waits for it
	go p.run(ctx)
	return p
}

// Send takes a message, waits while too many are unanswered, and returns where its result will come: once, and nobody
// need read it.
func (p *Producer) Send(ctx context.Context, value []byte, given ...MessageOption) (<-chan Result, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	one := &posted{newRequest(p.topic, value, given), make(chan Result, 1)}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.isClosed {
		<-p.slots
		return nil, errClosed
	}
	if p.isOnce && one.request.DedupId == nil {
		p.number++
		DedupID(p.prefix + strconv.FormatUint(p.number, 10)).set(one.request)
	}
	p.in <- one
	return one.result, nil
}

// Flush returns when all that was sent is decided. The error says how many have failed since the last Flush.
func (p *Producer) Flush(ctx context.Context) error {
	p.flushes.Lock()
	defer p.flushes.Unlock()
	for held := 0; held < cap(p.slots); held++ {
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			p.free(held)
			return ctx.Err()
		}
	}
	p.free(cap(p.slots))
	p.mutex.Lock()
	defer p.mutex.Unlock()
	failed, failure := p.failed, p.failure
	p.failed, p.failure = 0, nil
	if failed > 0 {
		return fmt.Errorf("goqueue: %d messages have failed, the first: %w", failed, failure)
	}
	return nil
}

// Close is Flush, and then the producer ends. If the context ends before, what is not decided has failed.
func (p *Producer) Close(ctx context.Context) error {
	p.mutex.Lock()
	p.isClosed = true
	p.mutex.Unlock()
	err := p.Flush(ctx)
	p.end()
	<-p.ended
	return err
}

func (p *Producer) free(count int) {
	for range count {
		<-p.slots
	}
}

func (p *Producer) decide(one *posted, result Result) {
	if result.Err != nil {
		p.mutex.Lock()
		if p.failed++; p.failure == nil {
			p.failure = result.Err
		}
		p.mutex.Unlock()
	}
	one.result <- result
	<-p.slots
}

type batch struct {
	number uint64
	ones   []*posted
	until  time.Time
	isSent bool
}

// sending is the one goroutine that has the stream and the batches that are not answered.
type sending struct {
	*Producer
	stream  grpc.BidiStreamingClient[pb.PublishStreamRequest, pb.PublishStreamResponse]
	cancel  context.CancelFunc
	answers chan *pb.PublishStreamResponse
	broken  chan error
	pending map[uint64]*batch
	number  uint64
	checked bool
	// The first of the next batch, which had no room in the last one.
	next *posted
	// How often streams broke since the last answer.
	breaks int
	// The stream was given up, because the node took nothing more in time.
	isLate bool
}

func (p *Producer) run(ctx context.Context) {
	defer close(p.ended)
	s := &sending{Producer: p, pending: map[uint64]*batch{}}
	defer s.drop()
	late := time.NewTicker(min(max(p.timeout/4, time.Millisecond), time.Second))
	defer late.Stop()
	for {
		var ones []*posted
		if ctx.Err() != nil {
			s.finish()
			return
		}
		select {
		case err := <-s.broken:
			s.mend(ctx, err)
			continue
		case <-late.C:
			s.expire(errLate)
			continue
		default:
		}
		if s.next != nil {
			ones = s.gather(ctx, s.next)
		} else {
			select {
			case <-ctx.Done():
				continue
			case one := <-p.in:
				ones = s.gather(ctx, one)
			case answer := <-s.answers:
				s.answered(answer)
				continue
			case err := <-s.broken:
				s.mend(ctx, err)
				continue
			case <-late.C:
				s.expire(errLate)
				continue
			}
		}
		s.number++
		made := &batch{s.number, ones, time.Now().Add(p.timeout), false}
		s.pending[made.number] = made
		if s.stream == nil {
			s.mend(ctx, nil)
		} else {
			s.send(made)
		}
	}
}

// finish decides all that was taken: nothing more is, after Close has begun.
func (s *sending) finish() {
	s.fail(errClosed)
	if s.next != nil {
		s.decide(s.next, Result{Err: errClosed})
	}
	for len(s.in) > 0 {
		s.decide(<-s.in, Result{Err: errClosed})
	}
}

// gather takes what comes until the batch is full or has waited long enough.
func (s *sending) gather(ctx context.Context, first *posted) []*posted {
	ones, size := []*posted{first}, proto.Size(first.request)
	s.next = nil
	timer := time.NewTimer(s.linger)
	defer timer.Stop()
	for len(ones) < s.batchMessages && size < s.batchBytes {
		select {
		case one := <-s.in:
			more := proto.Size(one.request)
			if size+more > s.batchBytes {
				s.next = one
				return ones
			}
			ones, size = append(ones, one), size+more
		case answer := <-s.answers:
			s.answered(answer)
		case <-timer.C:
			return ones
		case <-ctx.Done():
			return ones
		}
	}
	return ones
}

// send leaves an error to whoever reads the answers: it is told there, too. A node that takes nothing more is given up.
func (s *sending) send(made *batch) {
	request := &pb.PublishStreamRequest{CorrelationId: strconv.FormatUint(made.number, 10)}
	for _, one := range made.ones {
		request.Batch = append(request.Batch, one.request)
	}
	made.isSent = true
	late := time.AfterFunc(time.Until(made.until), s.cancel)
	_ = s.stream.Send(request)
	if !late.Stop() {
		s.isLate = true
	}
}

func (s *sending) answered(answer *pb.PublishStreamResponse) {
	number, _ := strconv.ParseUint(answer.CorrelationId, 10, 64)
	made := s.pending[number]
	if made == nil {
		return
	}
	delete(s.pending, number)
	s.breaks = 0
	for at, one := range made.ones {
		switch {
		case at < len(answer.Batch) && answer.Batch[at].Error == nil:
			s.decide(one, Result{Receipt: receiptOf(s.topic, answer.Batch[at])})
		case at < len(answer.Batch):
			s.decide(one, Result{Err: errorIn(answer.Batch[at].Error)})
		case answer.Error != nil:
			s.decide(one, Result{Err: errorIn(answer.Error)})
		default:
			s.decide(one, Result{Err: errors.New("goqueue: the answer has no result for this message")})
		}
	}
}

// mend opens a stream and sends again, in their order, what may be sent again.
func (s *sending) mend(ctx context.Context, cause error) {
	s.drop()
	if s.isLate {
		s.isLate, cause = false, errLate
	}
	s.sort(cause)
	if cause != nil {
		if isFinal(cause) {
			s.fail(cause)
			return
		}
		s.failTooLarge(cause)
		if s.breaks++; s.breaks > 1 && !s.client.options.retry.sleep(ctx, s.breaks-2) {
			return
		}
	}
	for attempt := 0; len(s.pending) > 0; attempt++ {
		until := time.Now().Add(s.timeout)
		for _, each := range s.pending {
			if each.until.Before(until) {
				until = each.until
			}
		}
		err := s.open(ctx, until)
		if err == nil {
			for _, each := range s.inOrder() {
				s.send(each)
			}
			return
		}
		isLate := !time.Now().Before(until)
		if !isLate && !errors.Is(err, ErrUnavailable) {
			s.fail(err)
			return
		}
		if s.expire(err); !s.client.options.retry.sleep(ctx, attempt) {
			return
		}
	}
}

// failTooLarge: a request that a node does not take ends the stream with all that is on it. Only a message that is larger
// than a batch can be the reason; without it the others get through.
func (s *sending) failTooLarge(cause error) {
	var told *Error
	if !errors.As(cause, &told) || told.Status != codes.ResourceExhausted {
		return
	}
	for number, each := range s.pending {
		if len(each.ones) == 1 && proto.Size(each.ones[0].request) > s.batchBytes {
			s.failOne(number, cause)
		}
	}
}

// isFinal: the node does not want it, and will not want it the next time.
func isFinal(cause error) bool {
	var told *Error
	if !errors.As(cause, &told) {
		return false
	}
	switch told.Status {
	case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument, codes.FailedPrecondition, codes.NotFound, codes.Unimplemented:
		return true
	}
	return false
}

// sort fails what was sent, may be stored, and has no name by which the broker would know it.
func (s *sending) sort(cause error) {
	for number, each := range s.pending {
		var kept []*posted
		for _, one := range each.ones {
			if each.isSent && one.request.DedupId == nil {
				s.decide(one, Result{Err: fmt.Errorf("%w: %w", ErrMaybeStored, cause)})
			} else {
				kept = append(kept, one)
			}
		}
		if each.ones = kept; len(kept) == 0 {
			delete(s.pending, number)
		}
	}
}

func (s *sending) fail(err error) {
	for number := range s.pending {
		s.failOne(number, err)
	}
}

// expire fails what was tried for long enough. An answer that comes later finds nobody.
func (s *sending) expire(err error) {
	now := time.Now()
	for number, each := range s.pending {
		if !now.Before(each.until) {
			s.failOne(number, err)
		}
	}
}

func (s *sending) failOne(number uint64, err error) {
	each := s.pending[number]
	delete(s.pending, number)
	if each.isSent {
		err = fmt.Errorf("%w: %w", ErrMaybeStored, err)
	}
	for _, one := range each.ones {
		s.decide(one, Result{Err: err})
	}
}

func (s *sending) inOrder() []*batch {
	var found []*batch
	for _, each := range s.pending {
		found = append(found, each)
	}
	sort.Slice(found, func(i, j int) bool { return found[i].number < found[j].number })
	return found
}

func (s *sending) open(ctx context.Context, until time.Time) error {
	if s.isOnce && !s.checked {
		bounded, cancel := context.WithDeadline(ctx, until)
		topic, err := s.client.Topic(bounded, s.topic)
		cancel()
		if err != nil {
			return err
		}
		if kept := topic.Options["dedup.ms"]; kept == "" || kept == "0" {
			return fmt.Errorf("goqueue: Once needs the option dedup.ms, and %s has none", s.topic)
		}
		s.checked = true
	}
	ctx, s.cancel = context.WithCancel(s.client.Outgoing(ctx))
	late := time.AfterFunc(time.Until(until), s.cancel)
	stream, err := s.client.publishes().PublishStream(ctx)
	isLate := !late.Stop()
	if err != nil || isLate {
		s.drop()
		if isLate {
			return errLate
		}
		return errorOf(err)
	}
	// As many answers as there can be: who sends must not wait for a node that waits until its answers are read.
	s.stream, s.answers, s.broken = stream, make(chan *pb.PublishStreamResponse, cap(s.slots)), make(chan error, 1)
	go func(answers chan<- *pb.PublishStreamResponse, broken chan<- error) {
		for {
			answer, err := stream.Recv()
			if err != nil {
				broken <- errorOf(err)
				return
			}
			select {
			case answers <- answer:
			case <-ctx.Done():
				return
			}
		}
	}(s.answers, s.broken)
	return nil
}

func (s *sending) drop() {
	for s.answers != nil && len(s.answers) > 0 {
		s.answered(<-s.answers)
	}
	if s.cancel != nil {
		s.cancel()
	}
	s.stream, s.cancel, s.answers, s.broken = nil, nil, nil, nil
}
