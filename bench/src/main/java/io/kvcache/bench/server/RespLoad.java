package io.kvcache.bench.server;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/// Requests for random keys of a RESP server, by so many connections with a thread each. A thread has one request
/// on its way at a time, or sixteen small ones.
///
/// @param operation of all requests
/// @param bytes of a value
record RespLoad(Operation operation, int bytes, int connections) {

    /// Keys that take half a GiB together, more than any cache of a processor; small ones less.
    private static final long WORKING_SET_BYTES = 512L << 20;

    /// Small values take a fill of seconds, one SET after the other; so many are as good.
    private static final int MAX_KEYS = 16384;

    private static final int SMALL_BYTES = 64;
    private static final int SMALL_KEYS = 10_000;
    private static final int SMALL_CONNECTIONS = 2;

    /// Small requests that are sent at once.
    private static final int DEPTH = 16;

    /// Each request of a batch asks for another key.
    private static final int STRIDE = 7919;

    private static final int KEY_DIGITS = 12;
    private static final String SMALL_VALUE = "v".repeat(SMALL_BYTES);

    /// What is asked for.
    public enum Operation {
        GET,
        SET,
        PIPE_EXISTS,
        PIPE_GET,
        PIPE_SET;

        boolean isPiped() {
            return name().startsWith("PIPE_");
        }

        /// The length of a small request's reply.
        private int replyBytes() {
            return switch (this) {
                case PIPE_EXISTS -> ":1\r\n".length();
                case PIPE_GET -> "$64\r\n".length() + SMALL_BYTES + 2;
                case PIPE_SET -> "+OK\r\n".length();
                case GET, SET -> throw new IllegalStateException("not a small request: " + this);
            };
        }

        private String smallCommand(String key) {
            String name = name().substring("PIPE_".length());
            return this == PIPE_SET
                    ? RespConnection.command(name, key, SMALL_VALUE)
                    : RespConnection.command(name, key);
        }
    }

    /// Small requests, sixteen at once over each of two connections.
    static List<RespLoad> piped() {
        return List.of(Operation.PIPE_EXISTS, Operation.PIPE_GET, Operation.PIPE_SET).stream()
                .map(operation -> new RespLoad(operation, SMALL_BYTES, SMALL_CONNECTIONS))
                .toList();
    }

    /// GET and SET of values of one size.
    static List<RespLoad> ofValues(int bytes, List<Integer> connections) {
        return List.of(Operation.GET, Operation.SET).stream()
                .flatMap(operation -> connections.stream().map(count -> new RespLoad(operation, bytes, count)))
                .toList();
    }

    /// As in `get-64k-2c` or `pipe-get`.
    public String name() {
        String what = operation.name().toLowerCase(Locale.ROOT).replace('_', '-');
        return operation.isPiped() ? what : what + "-" + size() + "-" + connections + "c";
    }

    /// The size of a value, as in `64k`.
    String size() {
        return bytes >= 1 << 20 ? (bytes >> 20) + "m" : bytes >= 1 << 10 ? (bytes >> 10) + "k" : bytes + "b";
    }

    int keyCount() {
        return operation.isPiped() ? SMALL_KEYS : Math.clamp(WORKING_SET_BYTES / bytes, 8, MAX_KEYS);
    }

    /// Deletes all keys of a server and stores every key once, one after the other.
    void fill(int port) throws IOException {
        fill(port, bytes, keyCount());
    }

    /// Deletes all keys of a server and stores the first ones, from 0 on.
    static void fill(int port, int bytes, int keys) throws IOException {
        try (RespConnection connection = new RespConnection(port, bytes)) {
            connection.flush();
            for (int key = 0; key < keys; key++) {
                connection.set(keyName(key), bytes);
            }
        }
    }

    /// The key with a number, as redis-benchmark names it.
    static String keyName(int key) {
        String number = Integer.toString(key);
        return "key:" + "0".repeat(KEY_DIGITS - number.length()) + number;
    }

    /// Puts the load on a server for a while. Each connection asks once at least, however late its thread begins.
    ///
    /// @return requests a second of all connections together
    double run(int port, Duration time) throws IOException, InterruptedException {
        long start = System.nanoTime();
        long end = start + time.toNanos();
        long count = 0;
        try (ExecutorService threads = Executors.newFixedThreadPool(connections)) {
            List<Future<Long>> running = new ArrayList<>();
            for (int i = 0; i < connections; i++) {
                long seed = i;
                running.add(threads.submit(() -> operation.isPiped() ? pipe(port, seed, end) : ask(port, seed, end)));
            }
            for (Future<Long> each : running) {
                count += each.get();
            }
        } catch (ExecutionException failed) {
            throw new IOException("a client failed: " + failed.getCause(), failed.getCause());
        }
        return count * 1e9 / (System.nanoTime() - start);
    }

    private long ask(int port, long seed, long end) throws IOException {
        Random random = new Random(seed);
        int keys = keyCount();
        long count = 0;
        try (RespConnection connection = new RespConnection(port, bytes)) {
            do {
                String key = keyName(random.nextInt(keys));
                if (operation == Operation.SET) {
                    connection.set(key, bytes);
                } else {
                    connection.get(key, bytes);
                }
                count++;
            } while (System.nanoTime() < end);
        }
        return count;
    }

    private long pipe(int port, long seed, long end) throws IOException {
        Random random = new Random(seed);
        ByteBuffer[] batches = new ByteBuffer[SMALL_KEYS / DEPTH];
        for (int i = 0; i < batches.length; i++) {
            batches[i] = batch(i);
        }
        int replyBytes = DEPTH * operation.replyBytes();
        long count = 0;
        try (RespConnection connection = new RespConnection(port, replyBytes)) {
            do {
                connection.send(batches[random.nextInt(batches.length)].rewind());
                connection.skip(replyBytes);
                count += DEPTH;
            } while (System.nanoTime() < end);
        }
        return count;
    }

    private ByteBuffer batch(int number) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < DEPTH; i++) {
            text.append(operation.smallCommand(keyName(Math.floorMod((number * DEPTH + i) * STRIDE, SMALL_KEYS))));
        }
        byte[] bytes = text.toString().getBytes(StandardCharsets.US_ASCII);
        return ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
    }
}
