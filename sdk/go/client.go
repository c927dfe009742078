package goqueue

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/goqueue/goqueue/sdk/go/pb"
)

const messageBytesMax = 16 << 20

// Backoff says how often a call is made, and how long the pauses between are: twice as long each time, with dice, so
// that clients do not come back all at once.
type Backoff struct {
	// Max is how often a call is made at most; 0: 8 times.
	Max int
	// First is the first pause; 0: 50 ms.
	First time.Duration
	// Longest is the longest pause; 0: 2 s.
	Longest time.Duration
}

func (b Backoff) pause(attempt int) time.Duration {
	pause := b.First << min(attempt, 20)
	if pause <= 0 || pause > b.Longest {
		pause = b.Longest
	}
	return pause/2 + rand.N(pause/2+1)
}

// sleep returns false if the context ended before.
func (b Backoff) sleep(ctx context.Context, attempt int) bool {
	timer := time.NewTimer(b.pause(attempt))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

type options struct {
	retry       Backoff
	connections int
	timeout     time.Duration
	tls         *tls.Config
	apiKey      string
	tenant      string
	http        string
}

// Option is how a Client is told what is not as usual.
type Option func(*options)

// WithRetry sets how calls are made again.
func WithRetry(b Backoff) Option { return func(o *options) { o.retry = b } }

// WithConnections sets how many connections there are; calls take them in turns. Without it there is one.
func WithConnections(n int) Option { return func(o *options) { o.connections = n } }

// WithTimeout sets how long a call with all its attempts may take if its context has no deadline; 30 s without it.
func WithTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithTLS makes the connections speak TLS. &tls.Config{} trusts the authorities of this machine.
func WithTLS(c *tls.Config) Option { return func(o *options) { o.tls = c } }

// WithAPIKey shows an API key with every call. Use it with TLS: without it, everybody on the way can read it.
func WithAPIKey(key string) Option { return func(o *options) { o.apiKey = key } }

// WithTenant is for an admin of the cluster who acts for a tenant.
func WithTenant(id string) Option { return func(o *options) { o.tenant = id } }

// WithHTTP names the HTTP API, such as http://localhost:8080, which Why asks.
func WithHTTP(url string) Option { return func(o *options) { o.http = strings.TrimRight(url, "/") } }

// Client has the connections.
type Client struct {
	options options
	conns   []*grpc.ClientConn
	turn    atomic.Uint64
	http    *http.Client

	mutex     sync.Mutex
	producers map[string]*producerID
}

// Dial makes a client. It waits for nothing: the first call connects. Several addresses, with commas between, are nodes
// of one cluster; each connection takes the first of them that answers, beginning with another one.
func Dial(addresses string, given ...Option) (*Client, error) {
	o := options{connections: 1, timeout: 30 * time.Second}
	for _, each := range given {
		each(&o)
	}
	fill(&o.retry.Max, 8)
	fill(&o.retry.First, 50*time.Millisecond)
	fill(&o.retry.Longest, 2*time.Second)
	if o.connections < 1 || o.connections > 1000 {
		return nil, errors.New("goqueue: a client has 1 to 1000 connections")
	}
	pool := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if usual, ok := http.DefaultTransport.(*http.Transport); ok { // a program may have put another one there
		pool = usual.Clone()
	}
	if o.tls != nil {
		pool.TLSClientConfig = o.tls.Clone()
	}
	client := &Client{options: o, http: &http.Client{Transport: pool}, producers: map[string]*producerID{}}
	nodes := strings.Split(addresses, ",")
	for number := range o.connections {
		conn, err := client.connect(nodes, number)
		if err != nil {
			return nil, errors.Join(err, client.Close())
		}
		client.conns = append(client.conns, conn)
	}
	return client, nil
}

func fill[T int | time.Duration](field *T, usual T) {
	if *field <= 0 {
		*field = usual
	}
}

func (c *Client) connect(nodes []string, number int) (*grpc.ClientConn, error) {
	var state resolver.State
	for at := range nodes {
		address := strings.TrimSpace(nodes[(at+number)%len(nodes)])
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		state.Addresses = append(state.Addresses, resolver.Address{Addr: address, ServerName: host})
	}
	nodesInOrder := manual.NewBuilderWithScheme("goqueue")
	nodesInOrder.InitialState(state)
	transport := insecure.NewCredentials()
	if c.options.tls != nil {
		transport = credentials.NewTLS(c.options.tls.Clone())
	}
	return grpc.NewClient(
		"goqueue:///"+state.Addresses[0].Addr,
		grpc.WithResolvers(nodesInOrder),
		grpc.WithTransportCredentials(transport),
		grpc.WithDisableRetry(), // we know which calls are safe
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: c.options.retry.First, Multiplier: 1.6, Jitter: 0.2, MaxDelay: c.options.retry.Longest},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(messageBytesMax), grpc.WaitForReady(true)),
	)
}

// Close closes the connections. Calls that wait for an answer end with an error.
func (c *Client) Close() error {
	var errs []error
	for _, conn := range c.conns {
		errs = append(errs, conn.Close())
	}
	c.http.CloseIdleConnections()
	return errors.Join(errs...)
}

// Conn is a connection, for calls that this package has no word for: pb.NewGroupServiceClient(q.Conn()). Make them with
// a context of Outgoing.
func (c *Client) Conn() grpc.ClientConnInterface {
	return c.conns[c.turn.Add(1)%uint64(len(c.conns))]
}

// Outgoing is a context whose calls show who they are from.
func (c *Client) Outgoing(ctx context.Context) context.Context {
	var pairs []string
	if c.options.apiKey != "" {
		pairs = append(pairs, "authorization", "Bearer "+c.options.apiKey)
	}
	if c.options.tenant != "" {
		pairs = append(pairs, "goqueue-tenant", c.options.tenant)
	}
	return metadata.AppendToOutgoingContext(ctx, pairs...)
}

// ask makes a call, and makes it again while the node cannot be reached, if it may be made twice.
func ask[Request, Reply any](
	ctx context.Context, c *Client, isSafe bool,
	call func(context.Context, *Request, ...grpc.CallOption) (*Reply, error), request *Request,
) (*Reply, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	for attempt := 0; ; attempt++ {
		reply, err := call(c.Outgoing(ctx), request)
		if err == nil {
			return reply, nil
		}
		told := errorOf(err)
		told.AskedAgain = attempt > 0
		isLast := attempt+1 >= c.options.retry.Max
		if !isSafe || isLast || told.Status != codes.Unavailable || !c.options.retry.sleep(ctx, attempt) {
			return nil, told
		}
	}
}

func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.options.timeout)
}

func (c *Client) acks() pb.AckServiceClient          { return pb.NewAckServiceClient(c.Conn()) }
func (c *Client) reads() pb.ConsumeServiceClient     { return pb.NewConsumeServiceClient(c.Conn()) }
func (c *Client) publishes() pb.PublishServiceClient { return pb.NewPublishServiceClient(c.Conn()) }
func (c *Client) topics() pb.TopicServiceClient      { return pb.NewTopicServiceClient(c.Conn()) }
func (c *Client) transactions() pb.TransactionServiceClient {
	return pb.NewTransactionServiceClient(c.Conn())
}
