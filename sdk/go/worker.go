package goqueue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/goqueue/goqueue/sdk/go/pb"
)

const (
	acksMax        = 500
	extendsAtOnce  = 16
	reasonCharsMax = 1000
)

// Job is a message that is leased to a worker.
type Job struct {
	Message
	// Attempt is 1 for the first delivery.
	Attempt int

	receipt string
	lost    context.CancelCauseFunc
	since   time.Time
	renewed time.Time
}

// Handler does a job. Nil: it is done. An error: it is delivered again later; Reject and RetryAfter say what else. The
// context ends when the lease is lost, with ErrLeaseLost as its cause, and when the worker cannot wait any longer.
type Handler func(ctx context.Context, job *Job) error

type rejected struct{ error }

// Reject makes a job a dead letter at once.
func Reject(err error) error { return rejected{err} }

type later struct {
	error
	after time.Duration
}

// RetryAfter lets a job come again after so long, instead of the backoff of its topic.
func RetryAfter(after time.Duration, err error) error { return later{err, after} }

// Worker reads a topic as a queue: messages are leased to it, handled, and settled one by one.
type Worker struct {
	client      *Client
	topic       string
	group       string
	concurrency int
	prefetch    int
	lease       time.Duration
	hold        time.Duration
	stopTimeout time.Duration
	start       pb.ConsumeStartPosition
	onLost      func(*Job, error)

	mutex sync.Mutex
	held  map[*Job]struct{}
}

// WorkerOption is how a Worker is told what is not as usual.
type WorkerOption func(*Worker)

// Concurrency sets how many jobs are handled at once; 1 without it.
func Concurrency(n int) WorkerOption { return func(w *Worker) { w.concurrency = max(n, 1) } }

// Prefetch sets how many jobs are fetched beyond those at work; 100 without it. Their leases are extended, too.
func Prefetch(n int) WorkerOption { return func(w *Worker) { w.prefetch = max(n, 0) } }

// Lease sets how long a message is leased for; it is extended at a third of that. 30 s without it.
func Lease(d time.Duration) WorkerOption { return func(w *Worker) { w.lease = d } }

// Hold sets how long the lease of one job is extended at most; an hour without it.
func Hold(d time.Duration) WorkerOption { return func(w *Worker) { w.hold = d } }

// StopTimeout sets how long jobs at work may take when the worker stops; 30 s without it.
func StopTimeout(d time.Duration) WorkerOption { return func(w *Worker) { w.stopTimeout = d } }

// FromLatest lets a group that is new begin with the next message instead of the oldest.
func FromLatest() WorkerOption {
	return func(w *Worker) { w.start = pb.ConsumeStartPosition_CONSUME_START_POSITION_LATEST }
}

// OnLost is told of jobs whose lease was lost, or that could not be settled: they are delivered again.
func OnLost(f func(*Job, error)) WorkerOption { return func(w *Worker) { w.onLost = f } }

// Worker makes one; Run lets it work.
func (c *Client) Worker(topic, group string, given ...WorkerOption) *Worker {
	w := &Worker{
		client: c, topic: topic, group: group, concurrency: 1, prefetch: 100, lease: 30 * time.Second,
		hold: time.Hour, stopTimeout: 30 * time.Second, onLost: func(*Job, error) {}, held: map[*Job]struct{}{},
	}
	for _, each := range given {
		each(w)
	}
	return w
}

// Run works until the context ends, and returns nil then; or until the broker refuses it. Jobs at work are finished; what
// was fetched and not begun goes to others.
func (w *Worker) Run(ctx context.Context, handle Handler) error {
	open, leave := context.WithCancel(context.WithoutCancel(ctx)) // outlives ctx: leases go when the stream ends
	defer leave()
	working, drop := context.WithCancel(open)
	defer drop()
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	jobs, done := make(chan *Job), make(chan *Job, acksMax)
	var refused error
	var receiving, handling, settling, extending sync.WaitGroup
	receiving.Go(func() {
		refused = w.receive(open, stopping, jobs)
		stop()
	})
	for range w.concurrency {
		handling.Go(func() { w.work(working, stopping, jobs, done, handle) })
	}
	for range 2 {
		settling.Go(func() { w.acknowledge(open, done) })
	}
	extending.Go(func() { w.extend(open) })
	<-stopping.Done()
	late := time.AfterFunc(w.stopTimeout, drop)
	handling.Wait()
	late.Stop()
	close(done)
	settling.Wait()
	leave()
	receiving.Wait()
	extending.Wait()
	clear(w.held)
	return refused
}

func (w *Worker) receive(open, stopping context.Context, jobs chan<- *Job) error {
	request := &pb.SubscribeRequest{
		Topics: []string{w.topic}, GroupId: w.group, StartPosition: w.start,
		MaxMessages: int32(w.concurrency + w.prefetch), Lease: durationpb.New(w.lease),
	}
	for attempt := 0; stopping.Err() == nil; attempt++ {
		err := w.subscribe(open, stopping, request, jobs, func() { attempt = 0 })
		if stopping.Err() != nil {
			return nil
		}
		switch told := errorOf(err); told.Status {
		case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument, codes.FailedPrecondition, codes.NotFound:
			return told
		}
		w.renew(open, 0) // the leases went with the stream, or did not: this tells
		w.client.options.retry.sleep(stopping, attempt)
	}
	return nil
}

// subscribe is one stream. It stays open while jobs are at work, even if it is not read any more.
func (w *Worker) subscribe(
	open, stopping context.Context, request *pb.SubscribeRequest, jobs chan<- *Job, healthy func(),
) error {
	ctx, cancel := context.WithCancel(w.client.Outgoing(open))
	defer cancel()
	opening := context.AfterFunc(stopping, cancel)
	stream, err := w.client.reads().Subscribe(ctx, request)
	if err != nil {
		return err
	}
	if !opening() {
		return stopping.Err()
	}
	events, broken := make(chan []*pb.Message), make(chan error, 1)
	go func() {
		for {
			event, err := stream.Recv()
			if err != nil {
				broken <- err
				return
			}
			select {
			case events <- event.GetMessages().GetMessages():
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case <-stopping.Done():
			<-open.Done()
			return nil
		case err := <-broken:
			return err
		case messages := <-events:
			healthy()
			for _, job := range w.take(messages) {
				select {
				case jobs <- job:
				case <-stopping.Done():
				}
			}
		}
	}
}

func (w *Worker) take(messages []*pb.Message) []*Job {
	now, jobs := time.Now(), make([]*Job, 0, len(messages))
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, each := range messages {
		job := &Job{Message: messageOf(each), Attempt: int(each.RetryCount) + 1, receipt: each.ReceiptHandle, since: now, renewed: now}
		w.held[job] = struct{}{}
		jobs = append(jobs, job)
	}
	return jobs
}

func (w *Worker) forget(job *Job) {
	w.mutex.Lock()
	delete(w.held, job)
	w.mutex.Unlock()
}

func (w *Worker) work(working, stopping context.Context, jobs <-chan *Job, done chan<- *Job, handle Handler) {
	for {
		select {
		case <-stopping.Done():
			return
		case job := <-jobs:
			ctx, lost := context.WithCancelCause(working)
			w.mutex.Lock()
			job.lost = lost
			_, isHeld := w.held[job]
			w.mutex.Unlock()
			if isHeld {
				outcome := w.handle(ctx, job, handle)
				if context.Cause(ctx) != ErrLeaseLost { // of that OnLost was told, and nothing can be said about it
					w.settle(working, job, done, outcome)
				}
			}
			lost(nil)
		}
	}
}

// handle makes an error of a panic: one bad message must not end the program for ever and ever.
func (w *Worker) handle(ctx context.Context, job *Job, handle Handler) (err error) {
	defer func() {
		if found := recover(); found != nil {
			err = fmt.Errorf("panic: %v", found)
		}
	}()
	return handle(ctx, job)
}

func (w *Worker) settle(ctx context.Context, job *Job, done chan<- *Job, outcome error) {
	if outcome == nil {
		done <- job
		return
	}
	defer w.forget(job)
	reason := []rune(outcome.Error())
	if len(reason) > reasonCharsMax {
		reason = reason[:reasonCharsMax]
	}
	var err error
	var no rejected
	var again later
	if errors.As(outcome, &no) {
		request := &pb.RejectRequest{ReceiptHandle: job.receipt, Reason: string(reason)}
		_, err = ask(ctx, w.client, true, w.client.acks().Reject, request)
	} else {
		request := &pb.NackRequest{ReceiptHandle: job.receipt, Reason: string(reason)}
		if errors.As(outcome, &again) {
			request.VisibilityTimeout = durationpb.New(again.after)
		}
		_, err = ask(ctx, w.client, true, w.client.acks().Nack, request)
	}
	var told *Error
	if errors.As(err, &told) && !(told.AskedAgain && told.Code == "ALREADY_SETTLED") {
		w.onLost(job, err)
	}
}

// acknowledge takes as many as have come while the last ones were on their way: so batches grow with the load.
func (w *Worker) acknowledge(ctx context.Context, done <-chan *Job) {
	for job := range done {
		jobs := []*Job{job}
		for len(jobs) < acksMax && len(done) > 0 {
			if next, ok := <-done; ok {
				jobs = append(jobs, next)
			}
		}
		request := &pb.BatchAckRequest{ReceiptHandles: make([]string, len(jobs))}
		by := make(map[string]*Job, len(jobs))
		for at, each := range jobs {
			request.ReceiptHandles[at], by[each.receipt] = each.receipt, each
		}
		told, err := ask(ctx, w.client, true, w.client.acks().BatchAck, request)
		for _, each := range jobs {
			w.forget(each)
			if err != nil {
				w.onLost(each, err)
			}
		}
		for _, each := range told.GetFailures() {
			// One that was settled before: an attempt whose answer was lost.
			if lost := by[each.ReceiptHandle]; lost != nil && each.Error.GetCode() != pb.ErrorCode_ERROR_CODE_ALREADY_SETTLED {
				w.onLost(lost, errorIn(each.Error))
			}
		}
	}
}

func (w *Worker) extend(ctx context.Context) {
	ticker := time.NewTicker(max(w.lease/6, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.renew(ctx, w.lease/3)
		}
	}
}

var errHeldTooLong = &Error{
	Status: codes.DeadlineExceeded, Code: "RECEIPT_HANDLE_EXPIRED", Message: "held for longer than Hold, its lease has ended",
}

// renew extends the leases that are at least so old, and tells those who were held for too long.
func (w *Worker) renew(ctx context.Context, age time.Duration) {
	now := time.Now()
	slots := make(chan struct{}, extendsAtOnce)
	var all sync.WaitGroup
	w.mutex.Lock()
	var old, over []*Job
	for job := range w.held {
		switch {
		case now.Sub(job.since) < w.hold:
			if now.Sub(job.renewed) >= age {
				old = append(old, job)
			}
		case now.Sub(job.renewed) >= w.lease:
			over = append(over, job)
		}
	}
	w.mutex.Unlock()
	for _, job := range over {
		w.renewedOrLost(job, now, errHeldTooLong)
	}
	for _, job := range old {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			bounded, cancel := context.WithTimeout(ctx, w.lease)
			defer cancel()
			request := &pb.ExtendVisibilityRequest{ReceiptHandle: job.receipt, VisibilityTimeout: durationpb.New(w.lease)}
			_, err := ask(bounded, w.client, true, w.client.acks().ExtendVisibility, request)
			w.renewedOrLost(job, now, err)
		})
	}
	all.Wait()
}

func (w *Worker) renewedOrLost(job *Job, now time.Time, err error) {
	w.mutex.Lock()
	_, isHeld := w.held[job]
	if err == nil {
		job.renewed = now
	}
	isLost := isHeld && errors.Is(err, ErrLeaseLost)
	if isLost {
		delete(w.held, job)
	}
	lost := job.lost
	w.mutex.Unlock()
	if isLost {
		if lost != nil {
			lost(ErrLeaseLost)
		}
		w.onLost(job, err)
	}
}
