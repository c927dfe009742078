// Command behaviours does the steps of sdk/behaviours.json with the Go SDK and prints what came of each as a line of
// JSON. Whoever started it kills and starts the node when it prints {"node": ...}, and answers with a line.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	goqueue "github.com/goqueue/goqueue/sdk/go"
)

type step struct {
	Do, As, Topic, Value, Group, Worker, Transaction, Name, In, Background, Reader string

	Key          *string
	Headers      map[string]string
	Priority     *string
	DelayMs      int64  `json:"delay_ms"`
	DedupID      string `json:"dedup_id"`
	Partitions   int    `json:"partitions"`
	Options      map[string]string
	Outcomes     map[string][]string
	LeaseMs      int64 `json:"lease_ms"`
	TakesMs      int64 `json:"takes_ms"`
	Workers      []string
	Partition    int32
	Offset       int64
	Count        any
	WaitFor      int `json:"wait_for"`
	RestartAfter int `json:"restart_after"`
}

type behaviour struct {
	Name  string
	Steps []step
}

const stepMax = 2 * time.Minute

type runner struct {
	late         *time.Timer
	dial         func() (*goqueue.Client, error)
	clients      []*goqueue.Client
	stdin        *bufio.Reader
	workers      map[string]*working
	readers      map[string]*reader
	transactions map[string]*goqueue.Transaction
	background   map[string]chan error
}

func main() {
	list := flag.String("list", "", "the behaviours")
	address := flag.String("grpc", "", "address of the gRPC API")
	url := flag.String("http", "", "URL of the HTTP API")
	ca := flag.String("ca", "", "file with an authority to trust: TLS")
	key := flag.String("key", "", "an API key")
	flag.Parse()
	given := []goqueue.Option{goqueue.WithHTTP(*url), goqueue.WithConnections(2), goqueue.WithAPIKey(*key)}
	if *ca != "" {
		pool := x509.NewCertPool()
		pem, err := os.ReadFile(*ca)
		check(err)
		pool.AppendCertsFromPEM(pem)
		given = append(given, goqueue.WithTLS(&tls.Config{RootCAs: pool}))
	}
	text, err := os.ReadFile(*list)
	check(err)
	var all []behaviour
	check(json.Unmarshal(text, &all))
	stdin := bufio.NewReader(os.Stdin)
	for _, each := range all {
		r := &runner{
			dial:  func() (*goqueue.Client, error) { return goqueue.Dial(*address, given...) },
			stdin: stdin, workers: map[string]*working{}, readers: map[string]*reader{},
			transactions: map[string]*goqueue.Transaction{}, background: map[string]chan error{},
		}
		say(r.run(each))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func say(what any) {
	text, err := json.Marshal(what)
	check(err)
	fmt.Println(string(text))
}

func (r *runner) run(b behaviour) map[string]any {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.late = time.AfterFunc(stepMax, cancel)
	defer r.late.Stop()
	got := map[string]any{}
	said := map[string]any{"name": b.Name, "got": got}
	check(r.newClient())
	defer func() {
		for _, each := range r.clients {
			check(each.Close())
		}
	}()
	for number, s := range b.Steps {
		r.late.Reset(stepMax)
		result, err := r.do(ctx, s)
		switch {
		case err != nil && s.As == "":
			said["failed"] = fmt.Sprintf("step %d, %s: %v", number+1, s.Do, err)
			return said
		case err != nil:
			got[s.As] = map[string]string{"error": kind(err)}
		case s.As != "":
			got[s.As] = result
		}
	}
	return said
}

func kind(err error) string {
	for word, target := range map[string]error{
		"not found": goqueue.ErrNotFound, "exists": goqueue.ErrExists, "invalid": goqueue.ErrInvalid,
		"fenced": goqueue.ErrFenced, "denied": goqueue.ErrDenied,
	} {
		if errors.Is(err, target) {
			return word
		}
	}
	return err.Error()
}

func (r *runner) newClient() error {
	client, err := r.dial()
	r.clients = append(r.clients, client)
	return err
}

// node asks for the node to be killed or started. How long that takes is not the client's.
func (r *runner) node(what string) error {
	r.late.Stop()
	defer r.late.Reset(stepMax)
	say(map[string]string{"node": what})
	_, err := r.stdin.ReadString('\n')
	return err
}
