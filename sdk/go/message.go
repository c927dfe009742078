package goqueue

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/goqueue/goqueue/sdk/go/pb"
)

// Priority is the lane of a message.
type Priority int32

// From what overtakes everything to what everything overtakes. Normal is what a message has that says none.
const (
	Critical Priority = iota
	High
	Normal
	Low
	Background
)

// Place is where a message is.
type Place struct {
	Topic     string
	Partition int32
	Offset    int64
}

func (p Place) String() string { return fmt.Sprintf("%s/%d/%d", p.Topic, p.Partition, p.Offset) }

// Receipt is told of a message that was published.
type Receipt struct {
	Place
	// Of the broker, when it was taken.
	Timestamp time.Time
	// It was published before under its DedupID, and stands there since.
	Duplicate bool
	// "disk", or "os" where the topic says so: then power loss can still take it.
	Durability string
}

// Message is one as it is read.
type Message struct {
	Place
	// Nil: none.
	Key       []byte
	Value     []byte
	Headers   map[string][]byte
	Priority  Priority
	Timestamp time.Time
}

func receiptOf(topic string, told *pb.PublishResponse) Receipt {
	receipt := Receipt{Place: Place{topic, told.Partition, told.Offset}, Duplicate: told.Duplicate}
	receipt.Timestamp = told.Timestamp.AsTime()
	switch told.Durability {
	case pb.Durability_DURABILITY_DISK:
		receipt.Durability = "disk"
	case pb.Durability_DURABILITY_OS:
		receipt.Durability = "os"
	}
	return receipt
}

func messageOf(told *pb.Message) Message {
	message := Message{
		Place:     Place{told.Topic, told.Partition, told.Offset},
		Key:       told.Key,
		Value:     told.Value,
		Headers:   make(map[string][]byte, len(told.Headers)+len(told.BinaryHeaders)),
		Priority:  Normal,
		Timestamp: told.Timestamp.AsTime(),
	}
	if told.Priority != nil {
		message.Priority = Priority(*told.Priority)
	}
	for name, value := range told.Headers {
		message.Headers[name] = []byte(value)
	}
	for name, value := range told.BinaryHeaders {
		message.Headers[name] = value
	}
	return message
}

// MessageOption is what a message says beside its value.
type MessageOption interface{ set(*pb.PublishRequest) }

type setter func(*pb.PublishRequest)

func (s setter) set(request *pb.PublishRequest) { s(request) }

func (p Priority) set(request *pb.PublishRequest) { lane := int32(p); request.Priority = &lane }

// Key gives a message a key: those of one key go to one partition.
func Key(key string) MessageOption { return KeyBytes([]byte(key)) }

// KeyBytes is Key for keys that are no text.
func KeyBytes(key []byte) MessageOption { return setter(func(r *pb.PublishRequest) { r.Key = key }) }

// Header adds a header.
func Header(name, value string) MessageOption {
	return setter(func(r *pb.PublishRequest) {
		if r.Headers == nil {
			r.Headers = map[string]string{}
		}
		r.Headers[name] = value
	})
}

// HeaderBytes adds a header whose value is no text.
func HeaderBytes(name string, value []byte) MessageOption {
	return setter(func(r *pb.PublishRequest) {
		if r.BinaryHeaders == nil {
			r.BinaryHeaders = map[string][]byte{}
		}
		r.BinaryHeaders[name] = value
	})
}

// Partition goes before the key.
func Partition(number int32) MessageOption {
	return setter(func(r *pb.PublishRequest) { r.Partition = &number })
}

// Delay lets a message be delivered so much later.
func Delay(d time.Duration) MessageOption {
	return setter(func(r *pb.PublishRequest) { r.Delay = durationpb.New(d) })
}

// At lets a message be delivered at a time.
func At(t time.Time) MessageOption {
	return setter(func(r *pb.PublishRequest) { r.DeliverAt = timestamppb.New(t) })
}

// TTL lets a message count for so long.
func TTL(d time.Duration) MessageOption {
	return setter(func(r *pb.PublishRequest) { r.Ttl = durationpb.New(d) })
}

// DedupID names a message: on a topic with dedup.ms one of that name is published once, however often it is sent. So it
// may be sent again when the connection breaks, and is.
func DedupID(id string) MessageOption {
	return setter(func(r *pb.PublishRequest) { r.DedupId = &id })
}

// NoValue is a message without a value, which in a compacted topic deletes its key.
var NoValue MessageOption = setter(func(r *pb.PublishRequest) { r.Value = nil })

func newRequest(topic string, value []byte, given []MessageOption) *pb.PublishRequest {
	if value == nil {
		value = []byte{}
	}
	request := &pb.PublishRequest{Topic: topic, Value: value}
	for _, each := range given {
		each.set(request)
	}
	return request
}
