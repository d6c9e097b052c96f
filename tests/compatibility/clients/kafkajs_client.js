// kafkajs as a process: `node kafkajs_client.js SCENARIO BOOTSTRAP ARGUMENTS-AS-JSON`.
//
// Every client in this folder understands the same scenarios and prints the same JSON; driver.py lists them.
// NODE_PATH says where the packages are.

const { CompressionCodecs, CompressionTypes, Kafka, ConfigResourceTypes, logLevel } = require("kafkajs");
const snappy = require("kafkajs-snappy");
const lz4 = require("lz4-napi");
const { ZstdCodec } = require("zstd-codec");

const codecs = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
};

function say(event) {
  process.stdout.write(JSON.stringify(event) + "\n");
}

async function bringCodecs() {
  const zstd = await new Promise((resolve) => ZstdCodec.run((binding) => resolve(new binding.Streaming())));
  CompressionCodecs[CompressionTypes.Snappy] = snappy;
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: async (encoder) => lz4.compressFrameSync(encoder.buffer),
    decompress: async (buffer) => lz4.decompressFrameSync(buffer),
  });
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async (encoder) => Buffer.from(zstd.compress(encoder.buffer)),
    decompress: async (buffer) => Buffer.from(zstd.decompress(buffer)),
  });
}

function value(number) {
  return `value-${number}-` + "x".repeat(number % 50);
}

async function produce(kafka, { topic, count, codec = "none", idempotent = false, timestamp_ms = null }) {
  const producer = kafka.producer({ idempotent, maxInFlightRequests: 1, allowAutoTopicCreation: false });
  await producer.connect();
  const messages = [];
  for (let number = 0; number < count; number++) {
    const message = { key: `key-${number}`, value: value(number), headers: { n: String(number) } };
    if (timestamp_ms !== null) message.timestamp = String(timestamp_ms + number);
    messages.push(message);
  }
  const answers = await producer.send({ topic, messages, acks: -1, compression: codecs[codec] });
  await producer.disconnect();
  // kafkajs tells only the first offset of each partition; how many went where is not its to say.
  say({ base_offsets: answers.map((answer) => [answer.partition, Number(answer.baseOffset)]) });
}

function asRecord(partition, message) {
  return {
    partition,
    offset: Number(message.offset),
    key: message.key === null ? null : message.key.toString(),
    value: message.value === null ? null : message.value.toString(),
    headers: Object.entries(message.headers).map(([name, content]) => [name, content.toString()]),
  };
}

async function consume(kafka, { topic, count }) {
  const consumer = kafka.consumer({ groupId: `reader-of-${topic}` });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  const records = [];
  await new Promise((resolve) => {
    consumer.run({
      eachMessage: async ({ partition, message }) => {
        records.push(asRecord(partition, message));
        if (records.length === count) resolve();
      },
    });
  });
  await consumer.disconnect();
  say({ records });
}

async function member(kafka, { group, topic, session_timeout_ms = 6000 }) {
  const consumer = kafka.consumer({
    groupId: group,
    sessionTimeout: session_timeout_ms,
    heartbeatInterval: 500,
    metadataMaxAge: 1000,
  });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    say({ assigned: (payload.memberAssignment[topic] || []).sort((a, b) => a - b) });
  });
  consumer.on(consumer.events.REBALANCING, () => say({ revoked: [] }));
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    autoCommitThreshold: 1,
    eachMessage: async ({ partition, message }) => say({ record: asRecord(partition, message) }),
  });
  await new Promise((resolve) => process.stdin.on("end", resolve).resume());
  await consumer.disconnect();
  say({ left: true });
}

async function offsets(kafka, { topic, timestamp_ms }) {
  const admin = kafka.admin();
  await admin.connect();
  const [ends] = await admin.fetchTopicOffsets(topic);
  const [found] = await admin.fetchTopicOffsetsByTimestamp(topic, timestamp_ms);
  const [after] = await admin.fetchTopicOffsetsByTimestamp(topic, timestamp_ms + 10000000);
  await admin.disconnect();
  // Asked for a time after all records, kafkajs answers with the end of the log itself.
  const end = Number(ends.offset);
  const afterAll = Number(after.offset);
  say({
    earliest: Number(ends.low),
    latest: end,
    at_time: Number(found.offset),
    after_all: afterAll === end ? null : afterAll,
  });
}

async function admin(kafka, { topic }) {
  const client = kafka.admin();
  await client.connect();
  const seen = {};
  const configEntries = [{ name: "retention.ms", value: "60000" }];
  await client.createTopics({ topics: [{ topic, numPartitions: 2, replicationFactor: -1, configEntries }] });
  seen.created = await partitionCount(client, topic);
  const again = { topics: [{ topic, numPartitions: 2, replicationFactor: -1 }] };
  seen.created_twice = (await client.createTopics(again)) ? null : "TOPIC_ALREADY_EXISTS";
  await client.createPartitions({ topicPartitions: [{ topic, count: 4 }] });
  seen.grown = await partitionCount(client, topic);
  seen.retention = await retention(client, topic);
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic };
  await client.alterConfigs({
    resources: [{ ...resource, configEntries: [{ name: "retention.ms", value: "120000" }] }],
  });
  seen.retention_altered = await retention(client, topic);
  await client.deleteTopics({ topics: [topic] });
  seen.deleted = !(await client.listTopics()).includes(topic);
  seen.deleted_twice = await client.deleteTopics({ topics: [topic] }).then(
    () => null,
    (refused) => refused.type || refused.originalError?.type || refused.cause?.type,
  );
  await client.disconnect();
  say(seen);
}

async function partitionCount(client, topic) {
  const metadata = await client.fetchTopicMetadata({ topics: [topic] });
  return metadata.topics[0].partitions.length;
}

async function retention(client, topic) {
  const described = await client.describeConfigs({
    resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configNames: ["retention.ms"] }],
    includeSynonyms: false,
  });
  return described.resources[0].configEntries.find((entry) => entry.configName === "retention.ms").configValue;
}

async function main() {
  const [scenario, bootstrap, given] = process.argv.slice(2);
  const kafka = new Kafka({
    clientId: "kafkajs-client",
    brokers: [bootstrap],
    logLevel: logLevel.ERROR,
    logCreator: () => ({ log }) => process.stderr.write(JSON.stringify(log) + "\n"),
    retry: { initialRetryTime: 100, retries: 4 },
  });
  await bringCodecs();
  await { produce, consume, member, offsets, admin }[scenario](kafka, JSON.parse(given));
  process.exit(0);
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
