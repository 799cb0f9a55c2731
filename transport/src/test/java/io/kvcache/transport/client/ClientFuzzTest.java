package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.RequestKind;
import io.kvcache.core.RequestLabel;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.contract.Repetitions;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.Endpoint;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.shm.ShmDirectory;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.CompletionException;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Frames of a server that are almost right, or nothing at all, among others that are: a caller
/// sees a shorter prefix, a miss or an error that says what is wrong, never a wrong byte, and nothing is left.
///
/// `-Dkvcache.transport.fuzz=N` spoils N frames, `-Dkvcache.transport.seed=S` has others spoilt.
@Timeout(600)
final class ClientFuzzTest {

    private static final int FRAMES = Repetitions.of("kvcache.transport.fuzz", 3_000, 50_000);
    /// So many make it sure that one of them keeps a session from its beginning.
    private static final int ALL_KINDS = 50_000;

    private static final long SEED = Long.getLong("kvcache.transport.seed", 20_261_122);
    private static final int CALLS_A_SESSION = 400;
    private static final int SESSIONS_A_SHARING_ONE = 8;
    private static final int BLOCKS = 6;
    private static final int BLOCK_BYTES = 4096;
    private static final Duration SHORT = Duration.ofMillis(1);
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 64, 16, Dtype.BF16));
    private static final Namespace OBJECTS = Namespace.objects("o", "t");

    private final SplittableRandom random = new SplittableRandom(SEED);
    private final FrameCorruptor spoilt = new FrameCorruptor(random.split());
    private final List<MemorySegment> room = IntStream.range(0, BLOCKS)
            .mapToObj(i -> Arena.ofAuto().allocate(BLOCK_BYTES))
            .toList();
    private final Logger log = Logger.getLogger(RemoteKvCache.class.getPackageName());
    private long verified;
    private long failed;

    /// Whether what is handed out must be right: a server that says where else in its memory a block lies is
    /// believed.
    private boolean checks;

    /// There is a line for all that is strange, and everything is.
    @BeforeEach
    void beQuiet() {
        log.setLevel(Level.SEVERE);
    }

    @AfterEach
    void speakAgain() {
        log.setLevel(null);
    }

    @Test
    @Tag("slow")
    void givenFramesThatAreAlmostRight_whenHeard_thenNothingIsWrongAndNothingIsLeft() {
        try (ShmDirectory folder = ShmDirectory.make();
                TieredKvCache store = TieredKvCache.builder()
                        .shareMemory(folder.path())
                        .hostBytes(64 << 20)
                        .failOnLeak(true)
                        .prefaultInBackground(false)
                        .closeWait(Duration.ofSeconds(30))
                        .build();
                Endpoint endpoint = new Endpoint(store, EndpointOptions.DEFAULTS, System::nanoTime)) {
            int refused = 0;
            int sessions = 0;
            while (spoilt.count() < FRAMES) {
                sessions++;
                checks = sessions % SESSIONS_A_SHARING_ONE > 0;
                InProcessServer server = new InProcessServer(endpoint, spoilt);
                refused += session(server) ? 0 : 1;
                assertThat(server.bugs()).as("seed %d", SEED).isEmpty();
            }
            assertThat(refused).as("sessions that do not begin").isBetween(FRAMES < ALL_KINDS ? 0 : 1, sessions - 1);
            assertThat(verified).as("blocks and objects").isPositive();
            assertThat(failed).as("calls that fail").isPositive();
            TestBlocks.await("all is back", () -> store.stats().openTables() == 0);
            // A client that is closed lets go of them on a thread of its own.
            TestBlocks.await(
                    "files that clients still map", () -> clientMappings(folder).isEmpty());
            assertThat(endpoint.stats().leases().open()).isZero();
            assertThat(endpoint.stats().reservations().open()).isZero();
            assertThat(endpoint.stats().connections()).isZero();
            store.validate();
        }
    }

    /// The lines of this process's mappings that are of a store's files and may only be read.
    private static List<String> clientMappings(ShmDirectory folder) {
        try (Stream<String> mappings = Files.lines(Path.of("/proc/self/maps"))) {
            return mappings.filter(line -> line.contains(" r--s ")
                            && line.contains(folder.path().toString()))
                    .toList();
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    /// Answers whether it began.
    private boolean session(InProcessServer server) {
        try (RemoteKvCache cache = new RemoteKvCacheBuilder(server)
                .requestTimeout(Duration.ofMillis(100))
                .memoryBytes(1 << 20)
                .connections(1)
                .sharedMemory(checks ? SharedMemoryMode.OFF : SharedMemoryMode.AUTO)
                .strict(true)
                .connect()) {
            attempt(() -> cache.register(SPACE));
            attempt(() -> cache.register(OBJECTS));
            for (int i = 0; i < CALLS_A_SESSION && cache.remoteStats().connected(); i++) {
                attempt(() -> call(cache));
            }
            TestBlocks.await("no memory is held", () -> cache.remoteStats().memoryUsed() == 0);
            assertThat(cache.remoteStats().open()).isZero();
            return true;
        } catch (UncheckedIOException spoiltGreeting) {
            return false;
        }
    }

    /// What may be thrown: that there is no answer, or that the server finds the question wrong.
    private void attempt(Runnable call) {
        try {
            call.run();
        } catch (UncheckedIOException unanswered) {
            failed++;
        } catch (IllegalArgumentException refused) {
            failed++;
            requireOfServer(refused);
        } catch (CompletionException refused) {
            failed++;
            requireOfServer(Objects.requireNonNull(refused.getCause()));
        }
    }

    /// It is the server that finds something wrong, and not the client that cannot read what it says.
    private static void requireOfServer(Throwable refused) {
        assertThat(refused).as("seed %d", SEED).isInstanceOf(IllegalArgumentException.class);
        StackTraceElement thrower = refused.getStackTrace()[0];
        assertThat(thrower.getClassName() + "." + thrower.getMethodName())
                .as("who throws it, seed %d", SEED)
                .matches("io\\.kvcache\\.transport\\.client\\.(RemoteContext\\.onFailure|SessionKeeper\\..*)");
    }

    private void call(RemoteKvCache cache) {
        BlockChain chain = chain();
        switch (random.nextInt(17)) {
            case 0, 1 -> cache.putAll(chain, 0, filled(chain), KvCache.NO_WAIT);
            case 2 -> put(cache, chain, random.nextInt(chain.length()));
            case 3, 4, 5 -> get(cache, chain, KvCache.NO_WAIT);
            case 6, 7 -> get(cache, chain, SHORT);
            case 8 -> copy(cache, chain);
            case 9 -> cache.match(chain);
            case 10 -> {
                cache.hint(new Hint.Expect(chain, SHORT));
                cache.hint(new Hint.Label(chain, 0, new RequestLabel(RequestKind.AGENT, 1, 2, false)));
            }
            case 11 -> cache.storeObject(OBJECTS, key(), room.getFirst(), KvCache.NO_WAIT);
            case 12 -> object(cache, random.nextBoolean() ? KvCache.NO_WAIT : SHORT);
            case 13 -> aboutObjects(cache);
            case 14 -> aboutAll(cache);
            case 15 -> range(cache, chain);
            default -> cache.drop(chain, random.nextInt(chain.length()));
        }
    }

    private BlockChain chain() {
        int seed = random.nextInt(10);
        return BlockChain.of(
                SPACE, IntStream.range(0, 16 * BLOCKS).map(i -> seed * 1000 + i).toArray());
    }

    private List<MemorySegment> filled(BlockChain chain) {
        for (int index = 0; index < BLOCKS; index++) {
            BlockContent.of(chain.key(index)).fill(room.get(index));
        }
        return room;
    }

    private static void put(KvCache cache, BlockChain chain, int index) {
        try (BlockWriter writer = cache.put(chain, index, 0, KvCache.NO_WAIT)) {
            if (writer.outcome() == PutOutcome.RESERVED) {
                BlockContent.of(chain.key(index)).fill(writer.segment());
                writer.seal();
            }
        }
    }

    private void get(KvCache cache, BlockChain chain, Duration timeout) {
        try (BlockTable table = cache.acquire(chain, random.nextInt(chain.length()), timeout)) {
            int end = table.await(table.endBlock(), timeout);
            for (int index = table.firstBlock(); index < end; index++) {
                MemorySegment block = table.segment(index);
                assertThat(block.byteSize()).isEqualTo(BLOCK_BYTES);
                require(chain, index, block);
            }
        }
    }

    private void copy(KvCache cache, BlockChain chain) {
        int copied = cache.getAll(chain, 0, room);
        for (int index = 0; index < copied; index++) {
            require(chain, index, room.get(index));
        }
    }

    private void range(KvCache cache, BlockChain chain) {
        ByteRange range = new ByteRange(random.nextInt(BLOCK_BYTES / 2), 1 + random.nextInt(BLOCK_BYTES / 2));
        int copied = cache.getRange(chain, 0, range, room, random.nextBoolean() ? KvCache.NO_WAIT : SHORT);
        for (int index = 0; checks && index < copied; index++) {
            MemorySegment block = BlockContent.of(chain.key(index)).toHeapSegment(BLOCK_BYTES);
            assertThat(room.get(index).asSlice(0, range.bytes()))
                    .matches(found -> found.mismatch(block.asSlice(range.offset(), range.bytes())) == -1);
            verified++;
        }
    }

    private void require(BlockChain chain, int index, MemorySegment block) {
        if (checks) {
            BlockContent.of(chain.key(index)).requireEqual(block);
            verified++;
        }
    }

    private byte[] key() {
        return new byte[] {1, 2, (byte) random.nextInt(4)};
    }

    private void object(KvCache cache, Duration timeout) {
        ObjectView found = cache.getObject(OBJECTS, key(), timeout);
        if (found != null) {
            try (found) {
                read(found);
            }
        }
    }

    private void read(ObjectView found) {
        if (checks) {
            assertThat(found.bytes()).isEqualTo(BLOCK_BYTES);
            verified++;
        }
        found.visit(0, found.bytes(), (piece, from, bytes) -> {
            if (bytes > 0) {
                piece.get(ValueLayout.JAVA_BYTE, from + bytes - 1);
            }
        });
    }

    private void aboutObjects(KvCache cache) {
        switch (random.nextInt(3)) {
            case 0 -> cache.containsObject(OBJECTS, key());
            case 1 -> cache.dropObject(OBJECTS, key());
            default ->
                cache.fetchObject(OBJECTS, key(), SHORT, Runnable::run)
                        .thenAccept(found -> {
                            if (found != null) {
                                found.close();
                            }
                        })
                        .toCompletableFuture()
                        .join();
        }
    }

    private void aboutAll(KvCache cache) {
        switch (random.nextInt(5)) {
            case 0 -> cache.stats();
            case 1 -> cache.flush(KvCache.NO_WAIT);
            case 2 -> cache.drop(SPACE);
            case 3 -> cache.events().snapshot();
            default -> cache.events().since(0, 5);
        }
    }
}
