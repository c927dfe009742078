package main

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	goqueue "github.com/goqueue/goqueue/sdk/go"
)

var priorities = []string{"critical", "high", "normal", "low", "background"}

func (s step) count() int { return int(s.Count.(float64)) }

func (s step) message() []goqueue.MessageOption {
	var given []goqueue.MessageOption
	if s.Key != nil {
		given = append(given, goqueue.Key(*s.Key))
	}
	for name, value := range s.Headers {
		given = append(given, goqueue.Header(name, value))
	}
	if s.Priority != nil {
		given = append(given, goqueue.Priority(slices.Index(priorities, *s.Priority)))
	}
	if s.DelayMs > 0 {
		given = append(given, goqueue.Delay(time.Duration(s.DelayMs)*time.Millisecond))
	}
	if s.DedupID != "" {
		given = append(given, goqueue.DedupID(s.DedupID))
	}
	return given
}

func (r *runner) do(ctx context.Context, s step) (any, error) {
	q := r.clients[len(r.clients)-1]
	switch s.Do {
	case "new_client":
		return nil, r.newClient()
	case "kill", "start":
		return nil, r.node(s.Do)
	case "create_topic":
		return nil, q.CreateTopic(ctx, s.Topic, s.Partitions, s.Options)
	case "delete_topic":
		return nil, q.DeleteTopic(ctx, s.Topic)
	case "set_options":
		return nil, q.SetOptions(ctx, s.Topic, s.Options)
	case "describe":
		topic, err := q.Topic(ctx, s.Topic)
		return map[string]any{"partitions": len(topic.Partitions), "options": topic.Options}, err
	case "publish":
		return r.publish(ctx, q, s)
	case "join":
		return nil, <-r.background[s.Background]
	case "produce":
		return r.produce(ctx, q, s)
	case "read":
		return read(ctx, q, s)
	case "values":
		return values(ctx, q, s)
	case "why":
		return why(ctx, q, s)
	case "begin":
		transaction, err := q.Begin(ctx, s.Name)
		r.transactions[s.Transaction] = transaction
		return nil, err
	case "commit":
		return nil, r.transactions[s.Transaction].Commit(ctx)
	case "abort":
		return nil, r.transactions[s.Transaction].Abort(ctx)
	case "follow":
		next, stop := iter.Pull2(q.Read(ctx, s.Topic))
		r.readers[s.Reader] = &reader{next, stop}
		return nil, nil
	case "take":
		return r.readers[s.Reader].take(s.count())
	case "end_follow":
		r.readers[s.Reader].stop()
		return nil, nil
	}
	return r.doWork(ctx, q, s)
}

func (r *runner) publish(ctx context.Context, q *goqueue.Client, s step) (any, error) {
	if s.Background != "" {
		done := make(chan error, 1)
		r.background[s.Background] = done
		go func() {
			_, err := q.Publish(ctx, s.Topic, []byte(s.Value), s.message()...)
			done <- err
		}()
		return nil, nil
	}
	var receipt goqueue.Receipt
	var err error
	if s.In != "" {
		receipt, err = r.transactions[s.In].Publish(ctx, s.Topic, []byte(s.Value), s.message()...)
	} else {
		receipt, err = q.Publish(ctx, s.Topic, []byte(s.Value), s.message()...)
	}
	return map[string]any{"partition": receipt.Partition, "offset": receipt.Offset}, err
}

func (r *runner) produce(ctx context.Context, q *goqueue.Client, s step) (any, error) {
	producer := q.Producer(s.Topic, goqueue.Once(), goqueue.Linger(time.Millisecond))
	var results []<-chan goqueue.Result
	for number := range s.count() {
		if number == s.RestartAfter {
			// Those before must be on their way, and not all be answered.
			if err := r.node("kill"); err != nil {
				return nil, err
			}
			if err := r.node("start"); err != nil {
				return nil, err
			}
		}
		result, err := producer.Send(ctx, []byte(strconv.Itoa(number)))
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	if err := producer.Close(ctx); err != nil {
		return nil, err
	}
	acknowledged := 0
	for _, each := range results {
		if result := <-each; result.Err == nil {
			acknowledged++
		}
	}
	return acknowledged, nil
}

func read(ctx context.Context, q *goqueue.Client, s step) ([]map[string]any, error) {
	whole := []map[string]any{}
	for message, err := range q.Read(ctx, s.Topic, goqueue.UntilEnd()) {
		if err != nil {
			return nil, err
		}
		one := map[string]any{"key": nil, "value": string(message.Value), "priority": priorities[message.Priority]}
		if message.Key != nil {
			one["key"] = string(message.Key)
		}
		headers := map[string]string{}
		for name, value := range message.Headers {
			if !strings.HasPrefix(name, "gq-") {
				headers[name] = string(value)
			}
		}
		one["headers"] = headers
		whole = append(whole, one)
	}
	return whole, nil
}

// values waits until there are enough of them, if the step says how many.
func values(ctx context.Context, q *goqueue.Client, s step) (any, error) {
	for {
		whole, err := read(ctx, q, s)
		if s.WaitFor > 0 && len(whole) < s.WaitFor && ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		found, different := []string{}, map[string]bool{}
		for _, each := range whole {
			value := each["value"].(string)
			found, different[value] = append(found, value), true
		}
		if s.Count == true {
			return map[string]int{"messages": len(found), "different": len(different)}, err
		}
		return found, err
	}
}

// why gives the state for a group, or of the message. A group of members has "read" what a queue group has "settled".
func why(ctx context.Context, q *goqueue.Client, s step) (any, error) {
	where, err := q.Why(ctx, goqueue.Place{Topic: s.Topic, Partition: s.Partition, Offset: s.Offset})
	state := where.State
	for _, each := range where.Groups {
		if each.Group == s.Group {
			state = each.State
		}
	}
	if state == "read" {
		state = "settled"
	}
	return state, err
}

type reader struct {
	next func() (goqueue.Message, error, bool)
	stop func()
}

func (r *reader) take(count int) (any, error) {
	found := [][]any{}
	for range count {
		message, err, ok := r.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, errors.New("the reading has ended")
		}
		found = append(found, []any{string(message.Value), message.Offset})
	}
	return found, nil
}
