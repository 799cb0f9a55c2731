package io.kvcache.bench.jmh;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutSummary;
import io.kvcache.core.hash.Sha256;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.client.SharedMemoryMode;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/// What do the keys of a conversation of 128k tokens cost when it comes again with 256 new tokens?
///
/// Budget: comparing its tokens with a copy, and 5 µs. `./kvcache bench core --filter prompt`
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class PromptBenchmark {

    /// Tokens that are known.
    public static final int KNOWN = 131_072;

    /// Tokens that follow them, each time others.
    public static final int NEW = 256;

    /// Hashes what is new.
    @Benchmark
    public BlockChain again(Conversation conversation) {
        return conversation.cache.chain(conversation.namespace(), conversation.nextTurn());
    }

    /// Hashes all.
    @Benchmark
    public BlockChain whole(Conversation conversation) {
        return BlockChain.of(conversation.namespace(), conversation.nextTurn());
    }

    /// The reference of [#again]: the speed of memory.
    @Benchmark
    public int compare(Conversation conversation) {
        return Arrays.mismatch(conversation.tokens(), 0, KNOWN, conversation.copy, 0, KNOWN);
    }

    /// The reference of [#whole]: one digest over the tokens' bytes.
    @Benchmark
    public byte[] sha256(Conversation conversation) {
        return conversation.sha.digest(conversation.bytes);
    }

    /// Hashes what is new, and pins the blocks that are known, as a request does.
    @Benchmark
    public int table(Conversation conversation) {
        try (BlockTable table = conversation.cache.acquire(again(conversation))) {
            return table.readyBlocks();
        }
    }

    /// The same at a server on this host, which is asked by message and whose memory holds the table's blocks.
    @Benchmark
    public int tableByMessage(SharedConversation conversation) {
        try (BlockTable table = conversation.cache().acquire(again(conversation))) {
            return table.readyBlocks();
        }
    }

    private static BlockChain again(SharedConversation conversation) {
        return conversation.cache().chain(conversation.namespace(), conversation.nextTurn());
    }

    /// A conversation that a cache knows, with an end that is new each time.
    private static final class Turns {

        private final int[] tokens =
                new SplittableRandom(3).ints((long) KNOWN + NEW).toArray();
        private final Namespace namespace;

        /// Stores all blocks but the new ones: 32 MiB, of any block size.
        Turns(KvCache cache, int blockTokens) {
            namespace = Namespace.of("bench", BlockShape.kv(1, 1, 64, blockTokens, Dtype.BF16));
            cache.register(namespace);
            BlockChain chain = cache.chain(namespace, Arrays.copyOf(tokens, KNOWN));
            MemorySegment block = MemorySegment.ofArray(new byte[blockTokens * 256]);
            PutSummary put = cache.putAll(chain, 0, Collections.nCopies(chain.length(), block), Duration.ofSeconds(10));
            if (cache.match(chain).blocks() != chain.length()) {
                throw new IllegalStateException(chain + ": " + put);
            }
        }

        int[] next() {
            tokens[KNOWN]++;
            return tokens;
        }
    }

    /// A conversation in this process.
    @State(Scope.Thread)
    public static class Conversation {

        @Param("256")
        int blockTokens = 256;

        final TieredKvCache cache =
                TieredKvCache.builder().hostBytes(128L << 20).build();
        final int[] copy = new int[KNOWN + NEW];
        final byte[] bytes = new byte[(KNOWN + NEW) * Integer.BYTES];
        final MessageDigest sha = Sha256.newDigest();

        @Nullable
        private Turns turns;

        /// Stores the blocks.
        @Setup
        public void open() {
            turns = new Turns(cache, blockTokens);
            System.arraycopy(tokens(), 0, copy, 0, copy.length);
        }

        Namespace namespace() {
            return Objects.requireNonNull(turns).namespace;
        }

        int[] tokens() {
            return Objects.requireNonNull(turns).tokens;
        }

        int[] nextTurn() {
            return Objects.requireNonNull(turns).next();
        }

        @TearDown
        public void close() {
            cache.close();
        }
    }

    /// A conversation at a server, which is in this process but is asked as one of another.
    @State(Scope.Thread)
    public static class SharedConversation {

        private static final Path MEMORY = Path.of("/dev/shm");

        @Nullable
        private Path folder;

        @Nullable
        private TieredKvCache store;

        @Nullable
        private TcpEndpoint server;

        @Nullable
        private RemoteKvCache cache;

        @Nullable
        private Turns turns;

        /// Starts the server and stores the blocks.
        @Setup
        public void open() throws IOException {
            folder = Files.createTempDirectory(MEMORY, "kvcache-bench-");
            store = TieredKvCache.builder()
                    .hostBytes(128L << 20)
                    .shareMemory(folder)
                    .build();
            server = TcpEndpoint.open(
                    store, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), EndpointOptions.DEFAULTS);
            cache = RemoteKvCache.builder("127.0.0.1:" + server.address().getPort())
                    .sharedMemory(SharedMemoryMode.REQUIRED)
                    .connect();
            turns = new Turns(cache, 256);
        }

        RemoteKvCache cache() {
            return Objects.requireNonNull(cache);
        }

        Namespace namespace() {
            return Objects.requireNonNull(turns).namespace;
        }

        int[] nextTurn() {
            return Objects.requireNonNull(turns).next();
        }

        /// Ends the server, whose memory takes its files along.
        @TearDown
        public void close() throws IOException {
            cache().close();
            Objects.requireNonNull(server).close();
            Objects.requireNonNull(store).close();
            Files.deleteIfExists(Objects.requireNonNull(folder));
        }
    }
}
