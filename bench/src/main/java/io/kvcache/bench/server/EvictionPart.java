package io.kvcache.bench.server;

import io.kvcache.bench.suite.Answer;
import io.kvcache.bench.suite.Budget;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/// What 99 of 100 requests take at most while every SET has to evict, beside redis-server.
///
/// Two connections SET keys at random out of four times as many as fit. One more GETs a few keys, which stay as they
/// are always used again.
final class EvictionPart implements ServerPart {

    private static final long HOST_BYTES = 512L << 20;
    private static final List<Integer> SIZES = List.of(64 << 10, 1 << 20, 4 << 20, 32 << 20);
    private static final int OVERFULL = 4;
    private static final int HOT_KEYS = 8;

    /// What the few keys may take of the memory, so that writers always find most of it.
    private static final long HOT_BYTES = HOST_BYTES / 8;

    /// From there on there are too few requests in a round's time for one of a hundred.
    private static final int LARGE = 32 << 20;

    private static final int LARGE_TIMES = 5;

    @Override
    public String name() {
        return "eviction";
    }

    @Override
    public String title() {
        return "latency while every SET evicts, beside redis-server";
    }

    @Override
    public List<Answer> run(Rounds rounds) throws IOException, InterruptedException {
        List<Answer> answers = new ArrayList<>();
        try (Contender redis = Contender.redis(HOST_BYTES);
                Contender ours = Contender.ours(HOST_BYTES)) {
            Duel duel = new Duel(ours, redis, rounds);
            for (int bytes : SIZES) {
                compare(bytes, duel, answers);
            }
        }
        return answers;
    }

    private static void compare(int bytes, Duel duel, List<Answer> answers) throws IOException, InterruptedException {
        Load load = new Load(true, bytes, 2);
        duel.rounds().say("evicting: " + load.words());
        Duration time = duel.rounds().time().multipliedBy(bytes < LARGE ? 1 : LARGE_TIMES);
        for (Contender each : List.of(duel.ours(), duel.theirs())) {
            Pressure.on(each.port(), bytes, time);
        }
        Paired sets = new Paired();
        Paired gets = new Paired();
        for (int round = 0; round < duel.rounds().count(); round++) {
            Pressure own = Pressure.on(duel.ours().port(), bytes, time);
            Pressure other = Pressure.on(duel.theirs().port(), bytes, time);
            sets.add(own.sets().p99Micros(), other.sets().p99Micros());
            gets.add(own.gets().p99Micros(), other.gets().p99Micros());
        }
        String size = load.name().replace("set-", "").replace("-2c", "");
        answers.add(sets.answer(
                new Asked("evict-set-" + size + "-p99", "How long do 99 of 100 SETs take that evict?", "us"),
                duel.theirs().name(),
                new Budget.None()));
        answers.add(gets.answer(
                new Asked("evict-get-" + size + "-p99", "And GETs meanwhile?", "us"),
                duel.theirs().name(),
                new Budget.None()));
    }

    /// What came of a time of eviction.
    private record Pressure(LoadResult sets, LoadResult gets) {

        static Pressure on(int port, int bytes, Duration time) throws IOException, InterruptedException {
            int keys = OVERFULL * (int) (HOST_BYTES / bytes);
            int hot = (int) Math.min(HOT_KEYS, HOT_BYTES / bytes);
            LoadRun writers = new LoadRun(to -> new ValueClient(to, bytes, true), keys, 2, port);
            LoadRun readers = new LoadRun(to -> new HotReader(to, bytes, keys), hot, 1, port);
            writers.run(time); // Fills what is not full yet.
            try (ExecutorService beside = Executors.newSingleThreadExecutor()) {
                Future<LoadResult> gets = beside.submit(() -> readers.run(time));
                LoadResult sets = writers.run(time);
                return new Pressure(sets, gets.get());
            } catch (ExecutionException failed) {
                throw new IOException("the reader failed: " + failed.getCause(), failed.getCause());
            }
        }
    }

    /// Gets keys that nobody else writes, and sets those that are not there.
    private static final class HotReader implements Exchange {

        private final ValueClient client;
        private final int bytes;
        private final int firstKey;

        HotReader(int port, int bytes, int firstKey) throws IOException {
            client = new ValueClient(port, bytes, false);
            this.bytes = bytes;
            this.firstKey = firstKey;
        }

        @Override
        public void ask(int key) throws IOException {
            if (!client.get(firstKey + key)) {
                client.set(firstKey + key, bytes);
            }
        }

        @Override
        public void close() throws IOException {
            client.close();
        }
    }
}
