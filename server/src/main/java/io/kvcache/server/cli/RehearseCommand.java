package io.kvcache.server.cli;

import io.kvcache.server.cli.CommandLineBuilder.LongRunningCommand;
import io.kvcache.server.client.ClientConfig;
import io.kvcache.server.client.RespClient;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine.Command;

/// `kvcache rehearse`: starts a server and asks it for a value, so that a JVM that watches knows what a server
/// loads and links.
///
/// The launcher runs this once a build with `-XX:AOTCacheOutput`, and the image once when it is made. A start with
/// what came of it takes half of the processor time, which matters most where the machine is busy.
@Command(
        name = "rehearse",
        description = "Serve one value and exit, for java -XX:AOTCacheOutput=FILE.",
        hidden = true,
        mixinStandardHelpOptions = true)
final class RehearseCommand implements Callable<Integer>, LongRunningCommand {

    private static final long TIMEOUT_NANOS = TimeUnit.SECONDS.toNanos(60);
    private static final long RETRY_MILLIS = 20;

    @Override
    public Integer call() throws IOException, InterruptedException {
        int port = freePort();
        Thread.ofPlatform()
                .daemon()
                .start(() -> Kvcache.commandLine()
                        .execute("serve", "--port", Integer.toString(port), "--host-bytes", "128MiB"));
        try (RespClient client = connect(port)) {
            client.set("key", new byte[100_000]);
            client.call("EXISTS", "key");
            client.call("GET", "key");
        }
        return 0;
    }

    private static int freePort() throws IOException {
        try (ServerSocket any = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return any.getLocalPort();
        }
    }

    private static RespClient connect(int port) throws IOException, InterruptedException {
        long end = System.nanoTime() + TIMEOUT_NANOS;
        while (true) {
            try {
                return new RespClient(ClientConfig.open("127.0.0.1", port));
            } catch (IOException notYet) {
                if (System.nanoTime() > end) {
                    throw notYet;
                }
                Thread.sleep(RETRY_MILLIS);
            }
        }
    }
}
