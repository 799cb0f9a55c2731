package io.kvcache.bench.cli;

import io.kvcache.bench.client.Peer;
import io.kvcache.bench.client.StoreClient;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.concurrent.TimeUnit;

/// Starts a server and asks it for a value, so that a JVM that watches knows what a server loads and links.
///
/// The launcher runs this once a build with `-XX:AOTCacheOutput`. A start with what came of it takes half of the
/// processor time, which matters most where the machine is busy.
final class Rehearsal {

    private static final long LONGEST_NANOS = TimeUnit.SECONDS.toNanos(60);
    private static final long PAUSE_MILLIS = 20;

    private Rehearsal() {}

    /// Exits with 0 when the value came back.
    public static void main(String[] arguments) throws IOException, InterruptedException {
        int port = freePort();
        Thread.ofPlatform()
                .daemon()
                .start(() -> Kvcache.commandLine()
                        .execute("serve", "--port", Integer.toString(port), "--host-bytes", "128MiB"));
        try (StoreClient client = connect(port)) {
            client.set("key", new byte[100_000]);
            client.ask("EXISTS", "key");
            client.ask("GET", "key");
        }
        System.exit(0);
    }

    private static int freePort() throws IOException {
        try (ServerSocket any = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return any.getLocalPort();
        }
    }

    private static StoreClient connect(int port) throws IOException, InterruptedException {
        long end = System.nanoTime() + LONGEST_NANOS;
        while (true) {
            try {
                return new StoreClient(Peer.open("127.0.0.1", port));
            } catch (IOException notYet) {
                if (System.nanoTime() > end) {
                    throw notYet;
                }
                Thread.sleep(PAUSE_MILLIS);
            }
        }
    }
}
