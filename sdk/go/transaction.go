package goqueue

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/goqueue/goqueue/sdk/go/pb"
)

func isEnd(err error) bool { return errors.Is(err, io.EOF) }

type producerID struct {
	mutex sync.Mutex
	name  string
	id    int64
	epoch int32
	known bool
}

// Transaction is several messages, in several topics, of which readers see all or none.
type Transaction struct {
	client   *Client
	producer *producerID
	id       string
	number   int64
	epoch    int32
	failure  error
	isOver   bool
}

// Begin begins a transaction of a producer with this name. The name outlives the program: the first Begin of a client
// ends what an earlier one of that name has left open, and shuts it out (ErrFenced). A name has one transaction at a time.
func (c *Client) Begin(ctx context.Context, name string) (*Transaction, error) {
	c.mutex.Lock()
	producer := c.producers[name]
	if producer == nil {
		producer = &producerID{name: name}
		c.producers[name] = producer
	}
	c.mutex.Unlock()
	producer.mutex.Lock()
	defer producer.mutex.Unlock()
	if !producer.known {
		told, err := ask(ctx, c, true, c.transactions().InitProducer, &pb.InitProducerRequest{TransactionalId: name})
		if err != nil {
			return nil, err
		}
		producer.id, producer.epoch, producer.known = told.ProducerId, told.Epoch, true
	}
	request := &pb.BeginTransactionRequest{TransactionalId: name, ProducerId: producer.id, Epoch: producer.epoch}
	told, err := ask(ctx, c, false, c.transactions().BeginTransaction, request)
	if err != nil {
		producer.known = false // the next Begin starts with a clean slate
		return nil, err
	}
	return &Transaction{client: c, producer: producer, id: told.TransactionId, number: producer.id, epoch: producer.epoch}, nil
}

// Publish publishes a message that readers see when the transaction is committed. After an error it can only be aborted.
func (t *Transaction) Publish(ctx context.Context, topic string, value []byte, given ...MessageOption) (Receipt, error) {
	if t.isOver || t.failure != nil {
		return Receipt{}, t.unusable()
	}
	request := newRequest(topic, value, given)
	request.ProducerId, request.ProducerEpoch = &t.number, t.epoch
	told, err := ask(ctx, t.client, false, t.client.publishes().Publish, request)
	if err != nil {
		t.failure = maybeStored(err)
		return Receipt{}, t.failure
	}
	return receiptOf(topic, told), nil
}

// Commit lets readers see all of it.
func (t *Transaction) Commit(ctx context.Context) error {
	if t.isOver || t.failure != nil {
		return t.unusable()
	}
	request := &pb.CommitTransactionRequest{TransactionalId: t.producer.name, ProducerId: t.number, Epoch: t.epoch}
	_, err := ask(ctx, t.client, true, t.client.transactions().CommitTransaction, request)
	return t.end(ctx, err, "CompleteCommit")
}

// Abort lets nobody see any of it.
func (t *Transaction) Abort(ctx context.Context) error {
	if t.isOver {
		return t.unusable()
	}
	request := &pb.AbortTransactionRequest{TransactionalId: t.producer.name, ProducerId: t.number, Epoch: t.epoch}
	_, err := ask(ctx, t.client, true, t.client.transactions().AbortTransaction, request)
	return t.end(ctx, err, "CompleteAbort")
}

// end looks whether an attempt whose answer was lost has done it.
func (t *Transaction) end(ctx context.Context, err error, wanted string) error {
	t.isOver = true
	var told *Error
	if errors.As(err, &told) && told.AskedAgain && told.Code == "INVALID_TXN_STATE" {
		request := &pb.DescribeTransactionRequest{TransactionId: t.id}
		found, lookErr := ask(ctx, t.client, true, t.client.transactions().DescribeTransaction, request)
		if lookErr == nil && found.Transaction.GetState() == wanted {
			err = nil
		}
	}
	if err != nil {
		t.producer.mutex.Lock()
		t.producer.known = false
		t.producer.mutex.Unlock()
	}
	return err
}

func (t *Transaction) unusable() error {
	if t.failure != nil && !t.isOver {
		return t.failure
	}
	return &Error{Status: codes.FailedPrecondition, Code: "INVALID_TXN_STATE", Message: "the transaction is over"}
}
