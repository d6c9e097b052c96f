// franz-go as a process: `franz-go SCENARIO BOOTSTRAP ARGUMENTS-AS-JSON`.
//
// Every client in clients/ understands the same scenarios and prints the same JSON; driver.py lists them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 30 * time.Second

type arguments struct {
	Topic            string `json:"topic"`
	Group            string `json:"group"`
	Count            int    `json:"count"`
	Codec            string `json:"codec"`
	Idempotent       bool   `json:"idempotent"`
	TimestampMs      *int64 `json:"timestamp_ms"`
	SessionTimeoutMs int    `json:"session_timeout_ms"`
	// "cooperative-sticky", which franz-go takes unless told otherwise, or "range".
	Strategy string `json:"partition.assignment.strategy"`
}

type record struct {
	Partition int32      `json:"partition"`
	Offset    int64      `json:"offset"`
	Key       *string    `json:"key"`
	Value     *string    `json:"value"`
	Headers   [][]string `json:"headers"`
}

var output sync.Mutex

func say(event map[string]any) {
	output.Lock()
	defer output.Unlock()
	must(json.NewEncoder(os.Stdout).Encode(event))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func connect(bootstrap string, options ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(bootstrap))...)
	must(err)
	return client
}

func produce(ctx context.Context, bootstrap string, given arguments) {
	codecs := map[string]kgo.CompressionCodec{
		"":       kgo.NoCompression(),
		"none":   kgo.NoCompression(),
		"gzip":   kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(),
		"lz4":    kgo.Lz4Compression(),
		"zstd":   kgo.ZstdCompression(),
	}
	options := []kgo.Opt{kgo.ProducerBatchCompression(codecs[given.Codec]), kgo.ProducerLinger(20 * time.Millisecond)}
	if !given.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client := connect(bootstrap, options...)
	defer client.Close()
	records := []*kgo.Record{}
	for number := range given.Count {
		one := &kgo.Record{
			Topic:   given.Topic,
			Key:     fmt.Appendf(nil, "key-%d", number),
			Value:   fmt.Appendf(nil, "value-%d-%s", number, strings.Repeat("x", number%50)),
			Headers: []kgo.RecordHeader{{Key: "n", Value: fmt.Append(nil, number)}},
		}
		if given.TimestampMs != nil {
			one.Timestamp = time.UnixMilli(*given.TimestampMs + int64(number))
		}
		records = append(records, one)
	}
	delivered := [][]int64{}
	for _, result := range client.ProduceSync(ctx, records...) {
		must(result.Err)
		delivered = append(delivered, []int64{int64(result.Record.Partition), result.Record.Offset})
	}
	say(map[string]any{"delivered": delivered})
}

func asRecord(from *kgo.Record) record {
	told := record{Partition: from.Partition, Offset: from.Offset, Key: text(from.Key), Value: text(from.Value)}
	told.Headers = [][]string{}
	for _, header := range from.Headers {
		told.Headers = append(told.Headers, []string{header.Key, string(header.Value)})
	}
	return told
}

func text(content []byte) *string {
	if content == nil {
		return nil
	}
	told := string(content)
	return &told
}

func consume(ctx context.Context, bootstrap string, given arguments) {
	client := connect(bootstrap, kgo.ConsumeTopics(given.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer client.Close()
	records := []record{}
	for len(records) < given.Count {
		fetched := client.PollFetches(ctx)
		must(fetched.Err())
		fetched.EachRecord(func(one *kgo.Record) { records = append(records, asRecord(one)) })
	}
	say(map[string]any{"records": records})
}

// holding is what a member has; a cooperative rebalance names only what changes.
type holding struct {
	sync.Mutex
	partitions []int32
}

func (held *holding) gain(given []int32) {
	held.Lock()
	defer held.Unlock()
	held.partitions = append(held.partitions, given...)
	slices.Sort(held.partitions)
	say(map[string]any{"assigned": held.partitions})
}

func (held *holding) lose(taken []int32) {
	held.Lock()
	defer held.Unlock()
	held.partitions = slices.DeleteFunc(held.partitions, func(one int32) bool { return slices.Contains(taken, one) })
	say(map[string]any{"assigned": held.partitions})
}

// member joins, tells what it is given and what it reads, commits each poll, and leaves when its input ends.
func member(bootstrap string, given arguments) {
	session := 6 * time.Second
	if given.SessionTimeoutMs > 0 {
		session = time.Duration(given.SessionTimeoutMs) * time.Millisecond
	}
	held := &holding{partitions: []int32{}}
	gained := func(_ context.Context, _ *kgo.Client, given map[string][]int32) {
		for _, partitions := range given {
			held.gain(partitions)
		}
	}
	lost := func(_ context.Context, _ *kgo.Client, taken map[string][]int32) {
		for _, partitions := range taken {
			held.lose(partitions)
		}
	}
	options := []kgo.Opt{
		kgo.ConsumerGroup(given.Group),
		kgo.ConsumeTopics(given.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.SessionTimeout(session),
		kgo.HeartbeatInterval(500 * time.Millisecond),
		kgo.MetadataMaxAge(time.Second),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.OnPartitionsAssigned(gained),
		kgo.OnPartitionsRevoked(lost),
		kgo.OnPartitionsLost(lost),
	}
	if given.Strategy == "range" {
		options = append(options, kgo.Balancers(kgo.RangeBalancer()))
	}
	client := connect(bootstrap, options...)
	ctx, leave := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		leave()
	}()
	for ctx.Err() == nil {
		fetched := client.PollFetches(ctx)
		fetched.EachRecord(func(one *kgo.Record) { say(map[string]any{"record": asRecord(one)}) })
		if err := client.CommitUncommittedOffsets(context.Background()); err != nil {
			say(map[string]any{"error": err.Error()})
		}
	}
	client.Close()
	say(map[string]any{"left": true})
}

func offsets(ctx context.Context, bootstrap string, given arguments) {
	client := kadm.NewClient(connect(bootstrap))
	defer client.Close()
	at := func(listed kadm.ListedOffsets, err error) int64 {
		must(err)
		found, _ := listed.Lookup(given.Topic, 0)
		must(found.Err)
		return found.Offset
	}
	latest := at(client.ListEndOffsets(ctx, given.Topic))
	told := map[string]any{
		"earliest":  at(client.ListStartOffsets(ctx, given.Topic)),
		"latest":    latest,
		"at_time":   at(client.ListOffsetsAfterMilli(ctx, *given.TimestampMs, given.Topic)),
		"after_all": nil,
	}
	// Asked for a time after all records, kadm answers with the end of the log itself.
	if after := at(client.ListOffsetsAfterMilli(ctx, *given.TimestampMs+10_000_000, given.Topic)); after != latest {
		told["after_all"] = after
	}
	say(told)
}

func admin(ctx context.Context, bootstrap string, given arguments) {
	client := kadm.NewClient(connect(bootstrap))
	defer client.Close()
	topic, seen := given.Topic, map[string]any{}
	minute, twoMinutes := "60000", "120000"
	_, err := client.CreateTopic(ctx, 2, 1, map[string]*string{"retention.ms": &minute}, topic)
	must(err)
	seen["created"] = partitionCount(ctx, client, topic)
	_, err = client.CreateTopic(ctx, 2, 1, nil, topic)
	seen["created_twice"] = refusal(err)
	grown, err := client.UpdatePartitions(ctx, 4, topic)
	must(err)
	must(grown.Error())
	seen["grown"] = partitionCount(ctx, client, topic)
	seen["retention"] = retention(ctx, client, topic)
	change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &twoMinutes}}
	altered, err := client.AlterTopicConfigs(ctx, change, topic)
	must(err)
	_, err = altered.On(topic, nil)
	must(err)
	seen["retention_altered"] = retention(ctx, client, topic)
	_, err = client.DeleteTopic(ctx, topic)
	must(err)
	listed, err := client.ListTopics(ctx)
	must(err)
	seen["deleted"] = !listed.Has(topic)
	_, err = client.DeleteTopic(ctx, topic)
	seen["deleted_twice"] = refusal(err)
	say(seen)
}

func partitionCount(ctx context.Context, client *kadm.Client, topic string) int {
	listed, err := client.ListTopics(ctx, topic)
	must(err)
	return len(listed[topic].Partitions)
}

func retention(ctx context.Context, client *kadm.Client, topic string) *string {
	described, err := client.DescribeTopicConfigs(ctx, topic)
	must(err)
	found, err := described.On(topic, nil)
	must(err)
	for _, config := range found.Configs {
		if config.Key == "retention.ms" {
			return config.Value
		}
	}
	return nil
}

func refusal(err error) any {
	var refused *kerr.Error
	if errors.As(err, &refused) {
		return refused.Message
	}
	return nil
}

func main() {
	scenario, bootstrap := os.Args[1], os.Args[2]
	given := arguments{}
	must(json.Unmarshal([]byte(os.Args[3]), &given))
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	switch scenario {
	case "produce":
		produce(ctx, bootstrap, given)
	case "consume":
		consume(ctx, bootstrap, given)
	case "member":
		member(bootstrap, given)
	case "offsets":
		offsets(ctx, bootstrap, given)
	case "admin":
		admin(ctx, bootstrap, given)
	default:
		must(fmt.Errorf("there is no scenario %s", scenario))
	}
}
