/* Kafka's Java clients against a closed node: for each properties file a producer sends, and a consumer of a group reads
   what it sent. Prints one line for each. Run as a source file: java -cp "jars/*" SecureRound.java quota FILE... */

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class SecureRound {
    static final int SENT = 200;
    static final long DEADLINE_MS = 60_000;

    public static void main(String[] arguments) throws Exception {
        System.out.println("quota " + quota(properties(arguments[0])));
        for (int number = 1; number < arguments.length; number++) {
            String name = Path.of(arguments[number]).getFileName().toString().replace(".properties", "");
            String told;
            try {
                told = round(name, properties(arguments[number]));
            } catch (Exception error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                told = cause.getClass().getSimpleName() + ": " + cause.getMessage();
            }
            System.out.println(name + " " + told);
        }
        System.out.flush();
        Runtime.getRuntime().halt(0); // what a client of a wrong password leaves behind must not keep it
    }

    static Properties properties(String file) throws Exception {
        Properties found = new Properties();
        try (var reader = Files.newBufferedReader(Path.of(file))) {
            found.load(reader);
        }
        return found;
    }

    static String round(String topic, Properties security) throws Exception {
        Properties sending = new Properties();
        sending.putAll(security);
        sending.put("max.block.ms", String.valueOf(DEADLINE_MS));
        Set<String> sent = new TreeSet<>();
        try (var producer = new KafkaProducer<>(sending, new StringSerializer(), new StringSerializer())) {
            List<Future<RecordMetadata>> acknowledged = new ArrayList<>();
            for (int number = 0; number < SENT; number++) {
                sent.add("value-" + number);
                acknowledged.add(producer.send(new ProducerRecord<>(topic, "key-" + number, "value-" + number)));
                acknowledged.get(0).get(); // who is not let in is told once, and not for each of them
            }
            for (var each : acknowledged) {
                each.get();
            }
        }
        Properties reading = new Properties();
        reading.putAll(security);
        reading.put("group.id", "readers-of-" + topic);
        reading.put("auto.offset.reset", "earliest");
        List<String> read = new ArrayList<>();
        long until_ms = System.currentTimeMillis() + DEADLINE_MS;
        try (var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (read.size() < SENT && System.currentTimeMillis() < until_ms) {
                consumer.poll(Duration.ofMillis(200)).forEach(each -> read.add(each.value()));
            }
            consumer.commitSync();
        }
        return read.size() == SENT && new TreeSet<>(read).equals(sent) ? "read all" : "read " + read.size();
    }

    /** Of fourteen topics twelve are made at once; the other two are, when the admin asks again by itself. */
    static String quota(Properties security) throws Exception {
        List<NewTopic> topics =
            IntStream.range(0, 14).mapToObj(number -> new NewTopic("t" + number, Optional.of(1), Optional.empty())).toList();
        try (Admin admin = Admin.create(security)) {
            Map<String, KafkaFuture<Void>> first =
                admin.createTopics(topics, new CreateTopicsOptions().retryOnQuotaViolation(false)).values();
            List<NewTopic> refused = new ArrayList<>();
            Set<String> why = new TreeSet<>();
            for (NewTopic each : topics) {
                try {
                    first.get(each.name()).get();
                } catch (ExecutionException error) {
                    refused.add(each);
                    why.add(error.getCause().getClass().getSimpleName());
                }
            }
            admin.createTopics(refused).all().get();
            return refused.size() + " " + why + ", then " + admin.listTopics().names().get().size() + " topics";
        }
    }
}
