import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/**
 * The alternative in Java: Kafka Streams restores a KTable on RocksDB from the topic, with two threads.
 *
 * <pre>java KafkaStreamsRestore HOST:PORT TOPIC FOLDER APPLICATION</pre>
 *
 * <p>Keys and values stay bytes. The clock runs from start() with an empty state folder to the state RUNNING, which comes
 * when every record is restored. Kafka Streams flushes its store later, at a checkpoint: that is not counted.
 */
public final class KafkaStreamsRestore {
  private static final int FETCH_BYTES = 4 * 1024 * 1024;

  public static void main(String[] words) throws Exception {
    String servers = words[0], topic = words[1], folder = words[2], app = words[3];
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
      startBehindTheEnd(admin, topic, app);
      var restored = new AtomicLong();
      var settings = settings(servers, folder, app);
      try (KafkaStreams streams = new KafkaStreams(topology(topic, settings), settings)) {
        var running = new CountDownLatch(1);
        streams.setStateListener((now, before) -> {
          if (now == KafkaStreams.State.RUNNING) running.countDown();
        });
        streams.setGlobalStateRestoreListener(counting(restored));
        long began = System.nanoTime();
        streams.start();
        if (!running.await(10, TimeUnit.MINUTES)) throw new IllegalStateException("not running after 10 minutes");
        double seconds = (System.nanoTime() - began) / 1e9;
        String answer = "{\"seconds\": " + seconds + ", \"records\": " + restored + ", \"rows\": " + rows(streams) + "}";
        System.out.println(answer);
      }
      // Kafka Streams stays a member when it is closed, to be back before a rebalance.
      admin.removeMembersFromConsumerGroup(app, new RemoveMembersFromConsumerGroupOptions()).all().get();
      admin.deleteConsumerGroups(List.of(app)).all().get();
    }
  }

  private static Topology topology(String topic, Properties settings) {
    var builder = new StreamsBuilder();
    builder.table(topic, Consumed.with(Serdes.Bytes(), Serdes.Bytes()),
        Materialized.<Bytes, Bytes, KeyValueStore<Bytes, byte[]>>as("rows"));
    return builder.build(settings);
  }

  /** A source topic is restored up to its group's offsets; without them it would be processed instead, slower. */
  private static void startBehindTheEnd(Admin admin, String topic, String app) throws Exception {
    int partitions = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
    var asked = IntStream.range(0, partitions).mapToObj(p -> new TopicPartition(topic, p))
        .collect(Collectors.toMap(each -> each, each -> OffsetSpec.latest()));
    var ends = admin.listOffsets(asked).all().get().entrySet().stream()
        .collect(Collectors.toMap(Map.Entry::getKey, each -> new OffsetAndMetadata(each.getValue().offset())));
    admin.alterConsumerGroupOffsets(app, ends).all().get();
  }

  private static Properties settings(String servers, String folder, String app) {
    var settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, app);
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, folder);
    settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
    // Otherwise Kafka Streams would write a second changelog: the topic is one already.
    settings.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.REUSE_KTABLE_SOURCE_TOPICS);
    settings.put("restore.consumer." + ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
    settings.put("restore.consumer." + ConsumerConfig.MAX_POLL_RECORDS_CONFIG, 10_000);
    settings.put("restore.consumer." + ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, FETCH_BYTES);
    settings.put("restore.consumer." + ConsumerConfig.FETCH_MAX_BYTES_CONFIG, 4 * FETCH_BYTES);
    settings.put("restore.consumer." + ConsumerConfig.RECEIVE_BUFFER_CONFIG, 1024 * 1024);
    return settings;
  }

  private static StateRestoreListener counting(AtomicLong restored) {
    return new StateRestoreListener() {
      @Override
      public void onRestoreStart(TopicPartition partition, String store, long from, long to) {}

      @Override
      public void onBatchRestored(TopicPartition partition, String store, long to, long count) {}

      @Override
      public void onRestoreEnd(TopicPartition partition, String store, long count) {
        restored.addAndGet(count);
      }
    };
  }

  private static long rows(KafkaStreams streams) {
    var store = streams.store(StoreQueryParameters.fromNameAndType("rows", QueryableStoreTypes.keyValueStore()));
    long rows = 0;
    try (var all = store.all()) {
      for (; all.hasNext(); all.next()) rows++;
    }
    return rows;
  }
}
