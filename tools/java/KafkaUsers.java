import java.io.PrintStream;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.serialization.*;

/**
 * Users of Kafka's Java clients, each in a thread. A line on standard input ends those that write; all end with the input.
 * Each line of standard output says what one of them was told: user, event, nanoseconds of the monotonic clock, topic, partition, offset and value, split by tabs.
 *
 *   java -cp 'jars/*' KafkaUsers.java servers=HOST:PORT,... topic=T partitions=0,1,2 every_ms=30 users=NAME,... [setting.KEY=VALUE]...
 *
 * `T` is written by `producer`, `T-transactions` by `transactions`, and `T-copy` by `copier`, once for each record of `T`.
 */
public class KafkaUsers {
    private static final CountDownLatch WRITTEN = new CountDownLatch(1), OVER = new CountDownLatch(1);
    private static final PrintStream OUT = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), true);
    private static final Duration POLL = Duration.ofMillis(200);
    private static final int ABORTED_OF = 5;
    private static final Map<String, String> GIVEN = new HashMap<>();
    private static final Map<String, Object> SETTINGS = new HashMap<>();
    private static int[] partitions;
    private static String topic;

    interface Work {
        void run(String user) throws Exception;
    }

    private static final Map<String, Work> USERS = Map.of(
            "producer", KafkaUsers::produce,
            "transactions", KafkaUsers::transact,
            "copier", KafkaUsers::copy,
            "classic", user -> read(user, "classic"),
            "consumer", user -> read(user, "consumer"),
            "share", KafkaUsers::share,
            "admin", KafkaUsers::administer);

    public static void main(String[] arguments) throws Exception {
        for (String each : arguments) {
            int at = each.indexOf('=');
            GIVEN.put(each.substring(0, at), each.substring(at + 1));
        }
        topic = GIVEN.get("topic");
        partitions = Arrays.stream(GIVEN.get("partitions").split(",")).mapToInt(Integer::parseInt).toArray();
        SETTINGS.put("bootstrap.servers", GIVEN.get("servers"));
        GIVEN.forEach((key, value) -> {
            if (key.startsWith("setting.")) SETTINGS.put(key.substring(8), value);
        });
        List<Thread> threads = new ArrayList<>();
        for (String user : GIVEN.get("users").split(",")) threads.add(new Thread(() -> tryAll(user)));
        threads.forEach(Thread::start);
        System.in.read();
        WRITTEN.countDown();
        while (System.in.read() >= 0) { }
        OVER.countDown();
        for (Thread each : threads) each.join();
    }

    private static void tryAll(String user) {
        try {
            USERS.get(user).run(user);
            tell(user, "ended", "", -1, -1, "");
        } catch (Throwable error) {
            StringBuilder said = new StringBuilder();
            for (Throwable each = error; each != null; each = each.getCause()) said.append(each).append("; ");
            tell(user, "failed", "", -1, -1, said.toString().replaceAll("\\s+", " "));
        }
    }

    private static synchronized void tell(String user, String event, String topic, int partition, long offset, String value) {
        OUT.println(String.join("\t", user, event, "" + System.nanoTime(), topic, "" + partition, "" + offset, value));
    }

    private static boolean goesOn() throws InterruptedException {
        return !WRITTEN.await(Integer.parseInt(GIVEN.get("every_ms")), TimeUnit.MILLISECONDS);
    }

    private static Map<String, Object> with(Object... more) {
        Map<String, Object> all = new HashMap<>(SETTINGS);
        for (int at = 0; at < more.length; at += 2) all.put((String) more[at], more[at + 1]);
        return all;
    }

    private static Producer<String, String> producer(Object... more) {
        return new KafkaProducer<>(with(more), new StringSerializer(), new StringSerializer());
    }

    private static Consumer<String, String> consumer(String user, Object... more) {
        Map<String, Object> all = with(more);
        all.putAll(Map.of("group.id", topic + "-" + user, "auto.offset.reset", "earliest", "enable.auto.commit", false,
                "isolation.level", "read_committed"));
        return new KafkaConsumer<>(all, new StringDeserializer(), new StringDeserializer());
    }

    /** Idempotent and acks=all, as by default. */
    private static void produce(String user) throws Exception {
        try (Producer<String, String> producer = producer()) {
            for (long number = 0; goesOn(); number++) {
                for (int partition : partitions) {
                    String value = number + "-" + partition;
                    producer.send(new ProducerRecord<>(topic, partition, null, value), (told, error) -> {
                        if (error == null) tell(user, "sent", topic, told.partition(), told.offset(), value);
                        else tell(user, "failed", topic, partition, -1, error.toString());
                    });
                }
            }
        }
    }

    /** One record to each partition in each transaction; one of five is aborted. */
    private static void transact(String user) throws Exception {
        String target = topic + "-transactions";
        try (Producer<String, String> producer = producer("transactional.id", topic + "-" + user)) {
            producer.initTransactions();
            for (long number = 0; goesOn(); number++) {
                long mine = number;
                boolean isDone = transaction(producer, number % ABORTED_OF == ABORTED_OF - 1, () -> {
                    for (int partition : partitions) producer.send(new ProducerRecord<>(target, partition, null, "" + mine));
                });
                tell(user, isDone ? "committed" : "aborted", target, -1, -1, "" + number);
            }
        }
    }

    /** As the documentation of KafkaProducer says: who is fenced ends, all else is aborted. */
    private static boolean transaction(Producer<?, ?> producer, boolean isAborted, Runnable work) {
        try {
            producer.beginTransaction();
            work.run();
            if (!isAborted) {
                producer.commitTransaction();
                return true;
            }
            producer.flush();
        } catch (ProducerFencedException | OutOfOrderSequenceException | AuthorizationException error) {
            throw error;
        } catch (KafkaException error) {
            System.err.println("aborted after " + error);
        }
        producer.abortTransaction();
        return false;
    }

    /** Exactly once: what is read and what is written about it are one transaction. */
    private static void copy(String user) throws Exception {
        try (Producer<String, String> producer = producer("transactional.id", topic + "-" + user);
                Consumer<String, String> consumer = consumer(user)) {
            producer.initTransactions();
            consumer.subscribe(List.of(topic));
            while (OVER.getCount() > 0) {
                ConsumerRecords<String, String> found = consumer.poll(POLL);
                if (found.isEmpty()) continue;
                boolean isDone = transaction(producer, false, () -> {
                    found.forEach(each -> producer.send(new ProducerRecord<>(topic + "-copy", each.value())));
                    producer.sendOffsetsToTransaction(found.nextOffsets(), consumer.groupMetadata());
                });
                if (isDone) found.forEach(each -> tell(user, "copied", topic, each.partition(), each.offset(), each.value()));
                else rewind(consumer);
            }
        }
    }

    private static void rewind(Consumer<?, ?> consumer) {
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
        committed.forEach((partition, offset) -> {
            if (offset == null) consumer.seekToBeginning(List.of(partition));
            else consumer.seek(partition, offset);
        });
    }

    private static void read(String user, String protocol) throws Exception {
        try (Consumer<String, String> consumer = consumer(user, "group.protocol", protocol)) {
            consumer.subscribe(List.of(topic, topic + "-transactions", topic + "-copy"));
            while (OVER.getCount() > 0) {
                ConsumerRecords<String, String> found = consumer.poll(POLL);
                found.forEach(each -> tell(user, "read", each.topic(), each.partition(), each.offset(), each.value()));
                if (found.isEmpty()) continue;
                try {
                    consumer.commitSync();
                    tell(user, "commit", "", -1, -1, "");
                } catch (CommitFailedException | RebalanceInProgressException error) {
                    System.err.println(user + " reads on after " + error);
                }
            }
        }
    }

    private static void share(String user) throws Exception {
        String group = topic + "-" + user;
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        ConfigEntry earliest = new ConfigEntry("share.auto.offset.reset", "earliest");
        try (Admin admin = Admin.create(with())) {
            admin.incrementalAlterConfigs(Map.of(resource, List.of(new AlterConfigOp(earliest, AlterConfigOp.OpType.SET)))).all().get();
        }
        try (ShareConsumer<String, String> consumer = new KafkaShareConsumer<>(
                with("group.id", group, "share.acknowledgement.mode", "explicit"), new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (OVER.getCount() > 0) {
                for (ConsumerRecord<String, String> each : consumer.poll(POLL)) {
                    tell(user, "read", topic, each.partition(), each.offset(), each.value());
                    consumer.acknowledge(each, AcknowledgeType.ACCEPT);
                }
                // What could not be acknowledged comes again: each error is of its partition, and none of the client.
                consumer.commitSync().forEach((partition, error) -> error.ifPresent(
                        found -> tell(user, "unacknowledged", topic, partition.partition(), -1, found.toString())));
            }
        }
    }

    /** Makes, describes and deletes a topic. What was done before its answer was lost is not an error. */
    private static void administer(String user) throws Exception {
        try (Admin admin = Admin.create(with())) {
            for (long number = 0; goesOn(); number++) {
                String name = topic + "-made-" + number;
                done(admin.createTopics(List.of(new NewTopic(name, 3, (short) 3))).all(), TopicExistsException.class);
                // As in Kafka, another node than the one that made it may not have heard of it yet.
                while (!done(admin.describeTopics(List.of(name)).allTopicNames(), UnknownTopicOrPartitionException.class)) goesOn();
                done(admin.describeCluster().nodes(), null);
                done(admin.deleteTopics(List.of(name)).all(), UnknownTopicOrPartitionException.class);
                tell(user, "done", name, -1, -1, "");
            }
        }
    }

    /** False: it ended with the error that is allowed. */
    private static boolean done(KafkaFuture<?> future, Class<?> allowed) throws Exception {
        try {
            future.get();
            return true;
        } catch (ExecutionException error) {
            if (allowed == null || !allowed.isInstance(error.getCause())) throw error;
            return false;
        }
    }
}
