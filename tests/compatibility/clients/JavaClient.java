// Kafka's own Java client as a process: `java JavaClient SCENARIO BOOTSTRAP ARGUMENTS-AS-JSON`.
//
// Every client in this folder understands the same scenarios and prints the same JSON; driver.py lists them. Arguments
// of a member whose names have a dot in them are settings of its consumer.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class JavaClient {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Duration PATIENCE = Duration.ofSeconds(30);

    public static void main(String[] given) throws Exception {
        String bootstrap = given[1];
        JsonNode arguments = JSON.readTree(given[2]);
        String topic = arguments.get("topic").asText();
        switch (given[0]) {
            case "produce" -> produce(bootstrap, topic, arguments);
            case "consume" -> consume(bootstrap, topic, arguments.get("count").asInt());
            case "member" -> member(bootstrap, topic, arguments);
            case "offsets" -> offsets(bootstrap, topic, arguments.get("timestamp_ms").asLong());
            case "admin" -> admin(bootstrap, topic);
            case "console" -> JavaConsole.ask(bootstrap, topic);
            default -> throw new IllegalArgumentException("there is no scenario " + given[0]);
        }
    }

    static void say(Map<String, Object> event) throws IOException {
        System.out.println(JSON.writeValueAsString(event));
        System.out.flush();
    }

    static Properties properties(String bootstrap, Map<String, Object> others) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.putAll(others);
        return properties;
    }

    static String value(int number) {
        return "value-" + number + "-" + "x".repeat(number % 50);
    }

    static void produce(String bootstrap, String topic, JsonNode arguments) throws Exception {
        Properties properties = properties(bootstrap, Map.of(
            "compression.type", arguments.path("codec").asText("none"),
            "enable.idempotence", arguments.path("idempotent").asBoolean(false),
            "acks", "all",
            "linger.ms", 20));
        JsonNode stamp = arguments.path("timestamp_ms");
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (var producer = new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < arguments.get("count").asInt(); number++) {
                Long timestamp = stamp.isNumber() ? stamp.asLong() + number : null;
                var record = new ProducerRecord<>(topic, null, timestamp, "key-" + number, value(number));
                record.headers().add("n", Integer.toString(number).getBytes(StandardCharsets.UTF_8));
                sent.add(producer.send(record));
            }
        }
        List<List<Long>> delivered = new ArrayList<>();
        for (Future<RecordMetadata> one : sent) {
            delivered.add(List.of((long) one.get().partition(), one.get().offset()));
        }
        say(Map.of("delivered", delivered));
    }

    static KafkaConsumer<String, String> consumer(String bootstrap, Map<String, Object> others) {
        return new KafkaConsumer<>(properties(bootstrap, others), new StringDeserializer(), new StringDeserializer());
    }

    static void consume(String bootstrap, String topic, int count) throws IOException {
        List<Map<String, Object>> records = new ArrayList<>();
        try (var consumer = consumer(bootstrap, Map.of("auto.offset.reset", "earliest"))) {
            List<TopicPartition> partitions = new ArrayList<>();
            consumer.partitionsFor(topic).forEach(one -> partitions.add(new TopicPartition(topic, one.partition())));
            consumer.assign(partitions);
            while (records.size() < count) {
                var polled = consumer.poll(PATIENCE);
                if (polled.isEmpty()) {
                    throw new IllegalStateException("nothing more came after " + records.size() + " records");
                }
                polled.forEach(record -> records.add(asRecord(record)));
            }
        }
        say(Map.of("records", records));
    }

    static Map<String, Object> asRecord(ConsumerRecord<String, String> record) {
        List<List<String>> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            headers.add(List.of(header.key(), new String(header.value(), StandardCharsets.UTF_8)));
        }
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("partition", record.partition());
        told.put("offset", record.offset());
        told.put("key", record.key());
        told.put("value", record.value());
        told.put("headers", headers);
        return told;
    }

    /** Joins, tells what it is given and what it reads, commits each poll, and leaves when its input ends. */
    static void member(String bootstrap, String topic, JsonNode arguments) throws Exception {
        Map<String, Object> settings = new HashMap<>(Map.of(
            "group.id", arguments.get("group").asText(),
            "auto.offset.reset", "earliest",
            "enable.auto.commit", false,
            "session.timeout.ms", arguments.path("session_timeout_ms").asInt(6000),
            "heartbeat.interval.ms", 500,
            "metadata.max.age.ms", 1000));
        arguments.properties().forEach(argument -> {
            if (argument.getKey().contains(".")) {
                settings.put(argument.getKey(), argument.getValue().asText());
            }
        });
        AtomicBoolean isLeaving = new AtomicBoolean();
        Thread input = new Thread(() -> {
            try {
                System.in.transferTo(java.io.OutputStream.nullOutputStream());
            } catch (IOException gone) {
                // as good as its end
            }
            isLeaving.set(true);
        });
        input.setDaemon(true);
        input.start();
        try (var consumer = consumer(bootstrap, settings)) {
            consumer.subscribe(List.of(topic), new Listener());
            while (!isLeaving.get()) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    say(Map.of("record", asRecord(record)));
                }
                try {
                    consumer.commitSync();
                } catch (KafkaException error) {
                    say(Map.of("error", error.toString()));
                }
            }
        }
        say(Map.of("left", true));
    }

    /** Tells all that is held: a cooperative rebalance names only what changes. */
    static class Listener implements ConsumerRebalanceListener {
        private final TreeSet<Integer> held = new TreeSet<>();

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> given) {
            given.forEach(one -> held.add(one.partition()));
            tell();
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> taken) {
            taken.forEach(one -> held.remove(one.partition()));
            tell();
        }

        private void tell() {
            try {
                say(Map.of("assigned", held));
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        }
    }

    static void offsets(String bootstrap, String topic, long timestampMs) throws IOException {
        TopicPartition partition = new TopicPartition(topic, 0);
        Map<String, Object> told = new LinkedHashMap<>();
        try (var consumer = consumer(bootstrap, Map.of())) {
            told.put("earliest", consumer.beginningOffsets(List.of(partition)).get(partition));
            told.put("latest", consumer.endOffsets(List.of(partition)).get(partition));
            told.put("at_time", at(consumer, partition, timestampMs));
            told.put("after_all", at(consumer, partition, timestampMs + 10_000_000));
        }
        say(told);
    }

    static Long at(KafkaConsumer<String, String> consumer, TopicPartition partition, long timestampMs) {
        OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, timestampMs)).get(partition);
        return found == null ? null : found.offset();
    }

    static void admin(String bootstrap, String topic) throws Exception {
        Map<String, Object> seen = new LinkedHashMap<>();
        try (Admin admin = Admin.create(properties(bootstrap, Map.of()))) {
            NewTopic wanted = new NewTopic(topic, Optional.of(2), Optional.of((short) 1));
            admin.createTopics(List.of(wanted.configs(Map.of("retention.ms", "60000")))).all().get();
            seen.put("created", partitionCount(admin, topic));
            seen.put("created_twice", refusal(admin.createTopics(List.of(wanted)).all()));
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4))).all().get();
            seen.put("grown", partitionCount(admin, topic));
            seen.put("retention", retention(admin, topic));
            var change = new AlterConfigOp(new ConfigEntry("retention.ms", "120000"), AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(resource(topic), List.of(change))).all().get();
            seen.put("retention_altered", retention(admin, topic));
            admin.deleteTopics(List.of(topic)).all().get();
            seen.put("deleted", !admin.listTopics().names().get().contains(topic));
            seen.put("deleted_twice", refusal(admin.deleteTopics(List.of(topic)).all()));
        }
        say(seen);
    }

    static int partitionCount(Admin admin, String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
    }

    static ConfigResource resource(String topic) {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }

    static String retention(Admin admin, String topic) throws Exception {
        var described = admin.describeConfigs(List.of(resource(topic))).all().get();
        return described.get(resource(topic)).get("retention.ms").value();
    }

    static String refusal(Future<Void> asked) throws InterruptedException {
        try {
            asked.get();
        } catch (ExecutionException refused) {
            return Errors.forException(refused.getCause()).name();
        }
        return null;
    }
}
