package io.kvcache.core.contract;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/// Contract of every implementation of [KvCache], theme by theme in the classes that extend this one.
///
/// An implementation's test opens its caches in one [CacheUnderTest.Factory] and extends each theme by a
/// class of one line:
///
/// ```java
/// final class MyCacheContractTest {
///     @Nested
///     final class Blocks extends BlockContract {
///         Blocks() {
///             super(MyCacheContractTest::open);
///         }
///     }
/// }
/// ```
///
/// The themes: [BlockContract], [BlockWriterContract], [HybridContract], [ObjectContract], [CapacityContract],
/// [HintContract],
/// [EventContract], [LifecycleContract], [ArgumentContract], [ConcurrencyContract].
/// An embedded cache and one over TCP are tested by all of it in every run, the other ones as [#CARRIER] says.
///
/// Each test gets a cache of 64 MiB, empty, with [#MIB] and [#OBJECTS] registered; after each test the
/// store is validated and must be without open tables.
public abstract class KvCacheContract {

    /// The tag of a test class that repeats the contract over another carrier: shared memory, Aeron, UCX, a disk.
    /// The usual run takes its [#ESSENTIAL] tests alone, `./kvcache test --full` all of them.
    public static final String CARRIER = "carrier";

    /// The tag of what depends on how bytes, waits and refusals travel, so that every carrier is tested by it.
    public static final String ESSENTIAL = "essential";

    /// Tokens in a block of every namespace here.
    protected static final int BLOCK_TOKENS = 16;

    /// Blocks of 1 MiB: 64 of them fill the cache.
    protected static final Namespace MIB = blocksOf("mib", 16, 1024);

    /// Blocks of 64 KiB.
    protected static final Namespace SMALL = blocksOf("small", 1, 1024);

    /// Opaque objects.
    protected static final Namespace OBJECTS = Namespace.objects("objects", "tenant");

    private final CacheUnderTest.Factory factory;
    private final CacheSetup setup;
    private CacheUnderTest subject;

    /// Tests a cache of [CacheSetup#SMALL].
    protected KvCacheContract(CacheUnderTest.Factory factory) {
        this(factory, CacheSetup.SMALL);
    }

    @SuppressWarnings("NullAway.Init") // opened before each test
    protected KvCacheContract(CacheUnderTest.Factory factory, CacheSetup setup) {
        this.factory = factory;
        this.setup = setup;
    }

    @BeforeEach
    final void openCache() {
        subject = factory.open(setup);
        subject.cache().register(MIB);
        subject.cache().register(SMALL);
        subject.cache().register(OBJECTS);
    }

    @AfterEach
    final void validateAndCloseCache() {
        try (CacheUnderTest closing = subject) {
            closing.settle();
            closing.validate();
            assertThat(closing.cache().stats().openTables())
                    .as("tables left open")
                    .isZero();
        }
    }

    /// The cache of this test.
    protected final KvCache cache() {
        return subject.cache();
    }

    /// Returns the environment of this test's cache.
    protected final CacheUnderTest subject() {
        return subject;
    }

    /// Another, empty cache; the test closes it.
    protected final CacheUnderTest open(CacheSetup other) {
        return factory.open(other);
    }

    /// Bytes of a block of a namespace.
    protected static long blockBytes(Namespace namespace) {
        return namespace.blockBytes();
    }

    /// Blocks of `layers · 4 · rowElements · 16` bytes.
    protected static Namespace blocksOf(String name, int layers, int rowElements) {
        return Namespace.of(name, BlockShape.kv(layers, 1, rowElements, BLOCK_TOKENS, Dtype.BF16));
    }

    /// A chain whose every block differs from those of other seeds.
    protected static BlockChain chain(Namespace namespace, int seed, int blocks) {
        return BlockChain.of(
                namespace,
                IntStream.range(0, blocks * BLOCK_TOKENS)
                        .map(i -> seed * 1_000_000 + i)
                        .toArray());
    }

    /// A chain of 1 MiB blocks.
    protected static BlockChain chain(int seed, int blocks) {
        return chain(MIB, seed, blocks);
    }

    /// Returns the expected content of block `index`.
    protected static BlockContent content(BlockChain chain, int index) {
        return BlockContent.of(chain.key(index));
    }

    /// Returns the expected content of an object.
    protected static BlockContent content(Namespace namespace, byte[] key) {
        return BlockContent.of(BlockKey.ofObject(namespace, key));
    }

    /// Asks for room without waiting.
    protected final BlockWriter reserve(BlockChain chain, int index) {
        return cache().put(chain, index, 0, KvCache.NO_WAIT);
    }

    /// The outcome of asking for room, abandoned at once.
    protected final PutOutcome outcome(BlockChain chain, int index) {
        try (BlockWriter writer = reserve(chain, index)) {
            return writer.outcome();
        }
    }

    /// Puts one block; answers what became of it.
    protected final PutOutcome put(BlockChain chain, int index) {
        try (BlockWriter writer = reserve(chain, index)) {
            if (writer.outcome() == PutOutcome.RESERVED) {
                content(chain, index).fill(writer.segment());
                assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
            }
            return writer.outcome();
        }
    }

    /// Puts all blocks of a chain, for which there must be room.
    protected final BlockChain stored(BlockChain chain) {
        for (int index = 0; index < chain.length(); index++) {
            assertThat(put(chain, index)).as("block %d", index).isEqualTo(PutOutcome.RESERVED);
        }
        return chain;
    }

    /// Leading blocks of the chain that are here.
    protected final int match(BlockChain chain) {
        return cache().match(chain).blocks();
    }

    /// Acquires what is here and checks every byte of it; answers how many blocks that was.
    protected final int verified(BlockChain chain) {
        try (BlockTable table = cache().acquire(chain)) {
            requireContent(table, chain);
            return table.readyBlocks();
        }
    }

    /// Checks every byte of a table.
    protected static void requireContent(BlockTable table, BlockChain chain) {
        for (int index = table.firstBlock(); index < table.readyEnd(); index++) {
            content(chain, index).requireEqual(table.segment(index));
        }
    }

    /// Puts an object of this content.
    protected final SealOutcome putObject(byte[] key, BlockContent content, long bytes) {
        try (ObjectWriter writer = cache().putObject(OBJECTS, key, bytes, KvCache.NO_WAIT)) {
            assertThat(writer.outcome()).as("room for %d bytes", bytes).isEqualTo(PutOutcome.RESERVED);
            long at = 0;
            for (MemorySegment piece : writer.segments()) {
                content.fill(at, piece);
                at += piece.byteSize();
            }
            assertThat(at).isEqualTo(bytes);
            return writer.seal();
        }
    }

    /// An object that must be here.
    protected final ObjectView view(byte[] key) {
        return Objects.requireNonNull(cache().getObject(OBJECTS, key), "the object is not here");
    }

    /// Checks every byte of an object.
    protected static void requireContent(ObjectView view, BlockContent content, long bytes) {
        assertThat(view.bytes()).isEqualTo(bytes);
        long at = 0;
        for (MemorySegment piece : view.segments()) {
            content.requireEqual(at, piece);
            at += piece.byteSize();
        }
        assertThat(at).isEqualTo(bytes);
    }
}
