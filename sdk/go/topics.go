package goqueue

import (
	"context"

	"github.com/goqueue/goqueue/sdk/go/pb"
)

// Topic is what a topic is and holds.
type Topic struct {
	Name string
	// What was set, such as "lease.ms".
	Options    map[string]string
	Partitions []PartitionState
}

// PartitionState is one partition of a topic.
type PartitionState struct {
	// The first offset that is there, and the next that will be.
	Start, End int64
	Bytes      int64
	InService  bool
}

// CreateTopic makes a topic. With 0 partitions it has as many as the node gives; options are those of docs/queue.md.
func (c *Client) CreateTopic(ctx context.Context, name string, partitions int, options map[string]string) error {
	request := &pb.CreateTopicRequest{Name: name, Partitions: int32(partitions), Options: options}
	_, err := ask(ctx, c, false, c.topics().CreateTopic, request)
	return err
}

// Topics are the names of all topics.
func (c *Client) Topics(ctx context.Context) ([]string, error) {
	told, err := ask(ctx, c, true, c.topics().ListTopics, &pb.ListTopicsRequest{})
	return told.GetNames(), err
}

// Topic describes one.
func (c *Client) Topic(ctx context.Context, name string) (Topic, error) {
	told, err := ask(ctx, c, true, c.topics().DescribeTopic, &pb.DescribeTopicRequest{Name: name})
	if err != nil {
		return Topic{}, err
	}
	topic := Topic{Name: told.Name, Options: told.Options}
	for _, each := range told.Partitions {
		state := PartitionState{each.StartOffset, each.EndOffset, each.SizeBytes, each.InService}
		topic.Partitions = append(topic.Partitions, state)
	}
	return topic, nil
}

// SetOptions sets options of a topic, and takes those back that are named after them.
func (c *Client) SetOptions(ctx context.Context, name string, options map[string]string, unset ...string) error {
	request := &pb.ConfigureTopicRequest{Name: name, Options: options, Unset: unset}
	_, err := ask(ctx, c, true, c.topics().ConfigureTopic, request)
	return err
}

// DeleteTopic deletes a topic and all that is in it, for good.
func (c *Client) DeleteTopic(ctx context.Context, name string) error {
	_, err := ask(ctx, c, false, c.topics().DeleteTopic, &pb.DeleteTopicRequest{Name: name})
	return err
}
