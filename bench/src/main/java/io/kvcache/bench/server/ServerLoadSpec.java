package io.kvcache.bench.server;

import java.io.IOException;
import java.util.Locale;

/// The requests of the clients.
///
/// @param write SET, else GET
/// @param bytes of a value
/// @param connections each with a thread and one request at a time
public record ServerLoadSpec(boolean write, int bytes, int connections) {

    /// Keys that take half a GiB together, more than any cache of a processor; small ones less.
    private static final long WORKING_SET_BYTES = 512L << 20;

    /// Small values take a fill of seconds, one SET after the other; so many are as good.
    private static final int MAX_KEYS = 16384;

    int keyCount() {
        return Math.clamp(WORKING_SET_BYTES / bytes, 8, MAX_KEYS);
    }

    LoadGenerator toGenerator(int port) {
        return new LoadGenerator(to -> new ValueClient(to, bytes, write), keyCount(), connections, port);
    }

    /// Stores every key once, and nothing else.
    void fillKeys(int port) throws IOException {
        ValueClient.fill(port, bytes, keyCount());
    }

    /// `set` or `get`.
    String operation() {
        return write ? "set" : "get";
    }

    /// The size of a value, as in `64k`.
    String shortSize() {
        return size("m", "k", "b");
    }

    /// As in `get-64k-2c`.
    String name() {
        return String.format(Locale.ROOT, "%s-%s-%dc", operation(), shortSize(), connections);
    }

    /// In words.
    String describe() {
        String clients = connections == 1 ? "one connection" : connections + " connections";
        return (write ? "SET" : "GET") + " of " + size(" MiB", " KiB", " bytes") + " over " + clients;
    }

    /// The size of a value in the largest unit that it has one of.
    private String size(String mebibytes, String kibibytes, String single) {
        if (bytes >= 1 << 20) {
            return (bytes >> 20) + mebibytes;
        }
        return bytes >= 1 << 10 ? (bytes >> 10) + kibibytes : bytes + single;
    }
}
