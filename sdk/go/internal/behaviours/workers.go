package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	goqueue "github.com/goqueue/goqueue/sdk/go"
)

type job struct {
	value   string
	attempt int
}

// working is a worker, and what its handler has done.
type working struct {
	stop context.CancelFunc
	end  chan error

	mutex sync.Mutex
	begun int
	jobs  []job
}

func (w *working) done() []job {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clone(w.jobs)
}

func start(ctx context.Context, q *goqueue.Client, s step) *working {
	ctx, stop := context.WithCancel(ctx)
	w := &working{stop: stop, end: make(chan error, 1)}
	given := []goqueue.WorkerOption{goqueue.Concurrency(4)}
	if s.LeaseMs > 0 {
		given = append(given, goqueue.Lease(time.Duration(s.LeaseMs)*time.Millisecond))
	}
	worker := q.Worker(s.Topic, s.Group, given...)
	handle := func(ctx context.Context, got *goqueue.Job) error {
		w.mutex.Lock()
		w.begun++
		w.mutex.Unlock()
		select {
		case <-time.After(time.Duration(s.TakesMs) * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		value := string(got.Value)
		w.mutex.Lock()
		w.jobs = append(w.jobs, job{value, got.Attempt})
		w.mutex.Unlock()
		if outcomes := s.Outcomes[value]; got.Attempt <= len(outcomes) {
			err := errors.New("as the behaviour says")
			if outcomes[got.Attempt-1] == "reject" {
				return goqueue.Reject(err)
			}
			return goqueue.RetryAfter(0, err)
		}
		return nil
	}
	go func() { w.end <- worker.Run(ctx, handle) }()
	return w
}

func (r *runner) doWork(ctx context.Context, q *goqueue.Client, s step) (any, error) {
	switch s.Do {
	case "start_worker":
		r.workers[s.Worker] = start(ctx, q, s)
		return nil, nil
	case "stop_worker":
		r.workers[s.Worker].stop()
		return nil, <-r.workers[s.Worker].end
	case "jobs":
		w := r.workers[s.Worker]
		return r.wait(ctx, []string{s.Worker}, func() bool { return len(w.done()) >= s.count() })
	case "begun":
		w := r.workers[s.Worker]
		return r.wait(ctx, []string{s.Worker}, func() bool {
			w.mutex.Lock()
			defer w.mutex.Unlock()
			return w.begun >= s.count()
		})
	case "either_jobs":
		return r.wait(ctx, s.Workers, func() bool { return len(r.all(s.Workers)) >= s.count() })
	case "attempts":
		return r.all(s.Workers), nil
	case "different_jobs":
		w := r.workers[s.Worker]
		different := func() []string {
			found := []string{}
			for _, each := range w.done() {
				found = append(found, each.value)
			}
			slices.Sort(found)
			return slices.Compact(found)
		}
		_, err := r.wait(ctx, []string{s.Worker}, func() bool { return len(different()) >= s.count() })
		return different(), err
	}
	return nil, errors.New("there is no step " + s.Do)
}

func (r *runner) all(names []string) [][]any {
	var found []job
	for _, name := range names {
		found = append(found, r.workers[name].done()...)
	}
	slices.SortFunc(found, func(a, b job) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.attempt, b.attempt))
	})
	shown := [][]any{}
	for _, each := range found {
		shown = append(shown, []any{each.value, each.attempt})
	}
	return shown
}

// wait returns what the workers have done when it is enough, or why one of them has ended.
func (r *runner) wait(ctx context.Context, names []string, isEnough func() bool) (any, error) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !isEnough() {
		for _, name := range names {
			select {
			case err := <-r.workers[name].end:
				return nil, errors.Join(errors.New("the worker has ended"), err)
			default:
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return r.all(names), nil
}
