package io.kvcache.bench.server;

import java.io.IOException;
import java.util.Locale;

/// What clients do.
///
/// @param write SET, else GET
/// @param bytes of a value
/// @param connections each with a thread and one request at a time
public record Load(boolean write, int bytes, int connections) {

    /// Keys that take half a GiB together, more than any cache of a processor; small ones less.
    private static final long WORKING_SET = 512L << 20;

    /// Small values take a fill of seconds, one SET after the other; so many are as good.
    private static final int MOST_KEYS = 16384;

    int keys() {
        return Math.clamp(WORKING_SET / bytes, 8, MOST_KEYS);
    }

    LoadRun against(int port) {
        return new LoadRun(to -> new ValueClient(to, bytes, write), keys(), connections, port);
    }

    /// Stores every key once, and nothing else.
    void fill(int port) throws IOException {
        try (ValueClient client = new ValueClient(port, bytes, true)) {
            client.forgetAll();
            for (int key = 0; key < keys(); key++) {
                client.ask(key);
            }
        }
    }

    /// As in `get-64k-2c`.
    String name() {
        String size = bytes >= 1 << 20 ? (bytes >> 20) + "m" : (bytes >> 10) + "k";
        return String.format(Locale.ROOT, "%s-%s-%dc", write ? "set" : "get", size, connections);
    }

    /// In words.
    String words() {
        String size = bytes >= 1 << 20 ? (bytes >> 20) + " MiB" : (bytes >> 10) + " KiB";
        String clients = connections == 1 ? "one connection" : connections + " connections";
        return (write ? "SET" : "GET") + " of " + size + " over " + clients;
    }
}
