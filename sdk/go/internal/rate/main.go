// How many messages a worker receives and acknowledges in a second: go run ./internal/rate -grpc 127.0.0.1:9000.
//
// It publishes them first. What is told is one line of JSON: messages, seconds, and CPU seconds of this program and of the node.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	goqueue "github.com/goqueue/goqueue/sdk/go"
)

func main() {
	address := flag.String("grpc", "127.0.0.1:9000", "address of the gRPC API")
	messages := flag.Int("messages", 100_000, "how many")
	batch := flag.Int("batch", 100, "how many are fetched at once")
	size := flag.Int("bytes", 100, "of a message")
	node := flag.Int("node", 0, "process of the node, whose CPU is told, too")
	flag.Parse()
	if err := run(*address, *messages, *batch, *size, *node); err != nil {
		log.Fatal(err)
	}
}

func run(address string, messages, batch, size, node int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	client, err := goqueue.Dial(address)
	if err != nil {
		return err
	}
	defer client.Close()
	topic := fmt.Sprintf("rate-%d", os.Getpid())
	producer := client.Producer(topic)
	for range messages {
		if _, err := producer.Send(ctx, make([]byte, size)); err != nil {
			return err
		}
	}
	if err := producer.Close(ctx); err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	var done, lost atomic.Int64
	worker := client.Worker(topic, "rate", goqueue.Prefetch(batch), goqueue.OnLost(func(*goqueue.Job, error) { lost.Add(1) }))
	began, before, nodeBefore := time.Now(), cpuSeconds(), cpuOf(node)
	err = worker.Run(working, func(context.Context, *goqueue.Job) error {
		if done.Add(1) == int64(messages) {
			stop()
		}
		return nil
	})
	seconds := time.Since(began).Seconds()
	if err == nil && lost.Load() > 0 {
		err = fmt.Errorf("%d of them were lost", lost.Load())
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"messages": float64(messages), "seconds": seconds, "cpu": cpuSeconds() - before, "rate": float64(messages) / seconds,
		"node_cpu": cpuOf(node) - nodeBefore,
	})
}

func cpuSeconds() float64 {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}

// cpuOf is of another process, by /proc; in hundredths of a second.
func cpuOf(pid int) float64 {
	said, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(said[strings.LastIndexByte(string(said), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return float64(user+system) / 100
}
