package io.kvcache.transport.client;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.contract.Pause;
import io.kvcache.core.contract.TestJvm;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Another JVM of a test: a server, or a client that holds a table and a writer. It says on its output
/// how far it is, and goes on when it is told to.
final class TestProcess implements AutoCloseable {

    /// Of a server whose client is stopped for longer; a client that runs renews it in time, on a busy machine
    /// too.
    static final Duration SHORT_LEASE = Duration.ofSeconds(5);

    private final Process process;
    private final BufferedReader said;

    private TestProcess(Process process) {
        this.process = process;
        said = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    /// With the flag that Aeron needs if an argument is an address of it.
    static TestProcess start(String... arguments) throws IOException {
        return start(TestProcess.class, arguments);
    }

    /// @param main reads its arguments
    static TestProcess start(Class<?> main, String... arguments) throws IOException {
        boolean aeron = Stream.of(arguments).anyMatch(each -> each.startsWith("aeron:"));
        return start(
                main,
                aeron ? List.of("--add-exports", "java.base/jdk.internal.misc=ALL-UNNAMED") : List.of(),
                arguments);
    }

    /// @param flags of the JVM, beside the usual ones
    static TestProcess start(Class<?> main, List<String> flags, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                TestJvm.program(),
                "-ea",
                "-Xmx256m",
                "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow",
                "-cp",
                System.getProperty("java.class.path")));
        command.addAll(TestJvm.FLAGS);
        command.addAll(flags);
        command.add(main.getName());
        command.addAll(List.of(arguments));
        return new TestProcess(new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start());
    }

    /// Of the process.
    long pid() {
        return process.pid();
    }

    /// The next line that it says.
    String line() throws IOException {
        String line = said.readLine();
        if (line == null) {
            throw new IOException("the child has ended");
        }
        return line;
    }

    void resume() throws IOException {
        process.outputWriter(StandardCharsets.UTF_8).append('\n').flush();
    }

    /// Sends it a signal by name.
    void signal(String name) throws IOException, InterruptedException {
        int exit = new ProcessBuilder("kill", "-" + name, Long.toString(process.pid()))
                .inheritIO()
                .start()
                .waitFor();
        if (exit != 0) {
            throw new IOException("kill -" + name + " ended with " + exit);
        }
    }

    /// Stops it, and returns when each of its threads has stopped: the signal comes to one after the other.
    void stop() throws IOException, InterruptedException {
        signal("STOP");
        Path threads = Path.of("/proc", Long.toString(process.pid()), "task");
        TestBlocks.await("all threads stop", () -> stopped(threads));
    }

    private static boolean stopped(Path threads) {
        try (Stream<Path> all = Files.list(threads)) {
            return all.allMatch(each -> state(each).equals("T"));
        } catch (IOException | UncheckedIOException ended) {
            return false;
        }
    }

    /// The letter behind the name, which is in brackets.
    private static String state(Path thread) {
        try {
            String said = Files.readString(thread.resolve("stat"));
            int name = said.lastIndexOf(") ");
            return said.substring(name + 2, name + 3);
        } catch (IOException ended) {
            throw new UncheckedIOException(ended);
        }
    }

    /// Kills it without a word, and returns when it is gone.
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }

    /// `serve PORT`, perhaps with a folder for shared memory, `hold ADDRESS`, `storm ADDRESS` or `view ADDRESS`
    @SuppressWarnings("SystemOut") // that is how a child speaks
    public static void main(String[] arguments) throws IOException {
        BufferedReader told = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        switch (arguments[0]) {
            case "serve" ->
                serve(Integer.parseInt(arguments[1]), arguments.length > 2 ? Path.of(arguments[2]) : null, told);
            case "view" -> view(arguments[1], told);
            case "hold" -> hold(arguments[1], told);
            case "storm" -> storm(arguments[1]);
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    @SuppressWarnings("SystemOut")
    private static void serve(int port, @Nullable Path folder, BufferedReader told) throws IOException {
        TieredKvCacheBuilder builder =
                TieredKvCache.builder().hostBytes(128 << 20).prefaultInBackground(false);
        try (LocalKvCache store = (folder == null ? builder : builder.shareMemory(folder)).build();
                TcpEndpoint endpoint = TcpEndpoint.open(
                        store,
                        new InetSocketAddress(InetAddress.getLoopbackAddress(), port),
                        EndpointOptions.DEFAULTS)) {
            System.out.println(endpoint.address().getPort());
            told.readLine();
        }
    }

    @SuppressWarnings("SystemOut")
    private static void hold(String address, BufferedReader told) throws IOException {
        try (RemoteKvCache cache = RemoteKvCache.builder(address)
                .requestTimeout(TestBlocks.PATIENCE)
                .connect()) {
            cache.register(TestBlocks.SPACE);
            try (BlockTable table = cache.acquire(TestBlocks.chain(1, 10));
                    BlockWriter writer = cache.put(TestBlocks.chain(2, 1), 0, 0, KvCache.NO_WAIT)) {
                System.out.println(table.readyBlocks() + " " + writer.outcome());
                told.readLine();
                System.out.println("verified " + TestBlocks.verify(table, TestBlocks.chain(1, 10)));
                System.out.println("sealed " + writer.seal());
            }
            told.readLine();
            long end = System.nanoTime() + TestBlocks.PATIENCE.toNanos();
            while (TestBlocks.verified(cache, TestBlocks.chain(1, 10)) < 10 && System.nanoTime() < end) {
                Pause.briefly();
            }
            System.out.println("again " + TestBlocks.verified(cache, TestBlocks.chain(1, 10)));
        }
    }

    /// Holds a writer, and puts and gets chains of two blocks, one block after the other and both at once, until
    /// it is killed.
    @SuppressWarnings("SystemOut")
    private static void storm(String address) {
        try (RemoteKvCache cache = RemoteKvCache.builder(address)
                .requestTimeout(TestBlocks.PATIENCE)
                .connect()) {
            cache.register(TestBlocks.SPACE);
            BlockWriter held = cache.put(TestBlocks.chain(0, 1), 0, 0, KvCache.NO_WAIT);
            System.out.println(held.outcome());
            for (int seed = 1; ; seed++) {
                BlockChain chain = TestBlocks.chain(seed % 64, 2);
                List<MemorySegment> both = Stream.of(0, 1)
                        .map(index -> BlockContent.of(chain.key(index)).toHeapSegment(TestBlocks.BLOCK_BYTES))
                        .toList();
                if (seed % 2 == 0) {
                    cache.putAll(chain, 0, both, KvCache.NO_WAIT);
                } else {
                    TestBlocks.put(cache, chain, 0);
                    TestBlocks.put(cache, chain, 1);
                }
                TestBlocks.verified(cache, chain);
                System.out.println("put");
            }
        }
    }

    /// Looks at blocks in place; says afterwards whether they were right, and whether the table says so.
    @SuppressWarnings("SystemOut")
    private static void view(String address, BufferedReader told) throws IOException {
        BlockChain chain = TestBlocks.chain(1, 10);
        try (RemoteKvCache cache = RemoteKvCache.builder(address)
                .requestTimeout(TestBlocks.PATIENCE)
                .connect()) {
            cache.register(TestBlocks.SPACE);
            try (BlockTable table = cache.acquire(chain)) {
                System.out.println(
                        table.readyBlocks() + " " + (TestBlocks.verify(table, chain) == 10 && table.isValid()));
                told.readLine();
                boolean right = true;
                for (int index = 0; index < 10; index++) {
                    right &= BlockContent.of(chain.key(index)).mismatch(table.segment(index)) < 0;
                }
                System.out.println("right " + right + " valid " + table.isValid());
            }
            told.readLine();
        }
    }
}
