package io.kvcache.gpu.engine;

import static io.kvcache.gpu.engine.ConditionWait.awaitTrue;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.DeviceSupport.Resized;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.tier.CudaTier;
import io.kvcache.gpu.tier.DeviceBlockMap;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Engines and the operator give a tier another size while engines use it.
@Tag("slow")
final class EngineRoomTest {

    private static final long MIB = 1 << 20;
    private static final long REGION = 2 * MIB;
    private static final long LEAST = 6 * REGION;
    private static final long FIRST = 12 * REGION;
    private static final long MOST = 16 * REGION;
    private static final int LONG_MILLIS = 10_000;
    private static final Duration LONG = Duration.ofSeconds(60);

    @TempDir
    private Path folder;

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final Arena arena = Arena.ofShared();
    private final ServedTier tier = new ServedTier(CudaTier.withDriver("GPU", fakeCuda::open, FIRST, MOST));

    @SuppressWarnings("NullAway.Init") // given by JUnit
    EngineRoomTest() {}

    @AfterEach
    void close() {
        assertThat(fakeCuda.left()).isEmpty();
        arena.close();
    }

    private TieredKvCache store() {
        TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(32 << 20)
                .policy(PolicyKind.LRU)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .admission(AdmissionKind.ALWAYS)
                .tier(tier)
                .build();
        cache.register(TwoLayerPool.SPACE);
        awaitTrue(() -> tier.bytes() == FIRST);
        return cache;
    }

    private EngineIpcServer door(TieredKvCache cache) {
        return EngineIpcServer.open(
                cache,
                tier,
                fakeCuda::open,
                name -> name.equals(TwoLayerPool.NAME) ? TwoLayerPool.SPACE : null,
                folder.resolve("door"));
    }

    private PooledEngine engine() throws IOException {
        return new PooledEngine(fakeCuda.open(), folder.resolve("door"), arena, 7);
    }

    private static ByteBuffer room(long bytes, int millis) {
        return EngineClient.body(12).putLong(bytes).putInt(millis);
    }

    /// Returns the bytes that the tier gave, once it has as many as the answer says.
    private long ask(PooledEngine engine, long bytes) throws IOException {
        ByteBuffer answer = engine.client().ask(EngineCodec.ROOM, room(bytes, LONG_MILLIS));
        long given = answer.getLong();
        assertThat(answer.getLong()).isEqualTo(tier.bytes());
        return given;
    }

    @Test
    void givenAnEngineThatNeedsRoom_whenItAsks_thenTheDeviceHasItUntilTheEngineReturnsIt() throws IOException {
        try (DeviceDriver other = fakeCuda.open();
                TieredKvCache cache = store();
                EngineIpcServer door = door(cache)) {
            long before;
            try (PooledEngine engine = engine()) {
                before = other.freeMemoryBytes();
                assertThat(ask(engine, REGION + 1)).as("in whole regions").isEqualTo(2 * REGION);
                assertThat(other.freeMemoryBytes()).isEqualTo(before + 2 * REGION);
                assertThat(ask(engine, -REGION)).isEqualTo(-REGION);
                assertThat(other.freeMemoryBytes()).isEqualTo(before + REGION);
                engine.engine().expectRefused(EngineCodec.ROOM, room(-REGION - 1, 0), "down to -" + REGION);
                assertThat(ask(engine, 2 * REGION)).isEqualTo(2 * REGION);
                assertThat(tier.bytes()).isEqualTo(FIRST - 3 * REGION);
                engine.client().close();
                awaitTrue(() -> tier.bytes() == FIRST);
            }
            assertThat(door.engineCount()).isZero();
        }
    }

    @Test
    void givenASizeOfTheOperators_whenTheEngineEnds_thenItStays() throws IOException {
        try (TieredKvCache cache = store();
                EngineIpcServer door = door(cache);
                PooledEngine engine = engine();
                PooledEngine second = engine()) {
            assertThat(ask(engine, REGION)).isEqualTo(REGION);
            assertThat(ask(second, 2 * REGION)).isEqualTo(2 * REGION);
            assertThat(tier.resize(LEAST, LONG)).isEqualTo(new Resized(FIRST - 3 * REGION, LEAST, ""));
            engine.engine().expectRefused(EngineCodec.ROOM, room(-1, 0), "down to 0");
            engine.client().close();
            second.client().close();
            awaitTrue(() -> door.engineCount() == 0);
            assertThat(tier.resize(LEAST, LONG)).isEqualTo(new Resized(LEAST, LEAST, ""));
        }
    }

    @Test
    void givenRequestsThatCannotBe_whenSent_thenEachIsRefusedWithItsReason() throws IOException {
        try (TieredKvCache cache = store();
                EngineIpcServer _ = door(cache);
                PooledEngine pooled = engine()) {
            InProcessEngine engine = pooled.engine();
            engine.expectRefused(EngineCodec.ROOM, room(0, 0), "room of 0 bytes; it takes 1 and up");
            engine.expectRefused(EngineCodec.ROOM, room(-1, 0), "room of -1 bytes");
            engine.expectRefused(EngineCodec.ROOM, room(Long.MIN_VALUE, 0), "room of -9223372036854775808 bytes");
            engine.expectRefused(EngineCodec.ROOM, room(FIRST - LEAST + 1, 0), "it takes " + LEAST + " to " + MOST);
            engine.expectRefused(EngineCodec.ROOM, room(Long.MAX_VALUE, 0), "it takes " + LEAST + " to " + MOST);
            engine.expectRefused(EngineCodec.ROOM, room(1, -1), "milliseconds to wait");
            engine.expectRefused(EngineCodec.ROOM, room(1, LONG_MILLIS + 1), "milliseconds to wait");
            engine.expectRefused(EngineCodec.ROOM, EngineClient.body(8).putLong(1), "cut short");
            assertThat(tier.bytes()).isEqualTo(FIRST);
            assertThat(ask(pooled, FIRST - LEAST)).isEqualTo(FIRST - LEAST);
            engine.expectRefused(EngineCodec.ROOM, room(1, 0), "it takes " + LEAST + " to " + MOST);
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> tier.resize(MOST + 1, LONG))
                    .withMessageContaining("it takes " + LEAST + " to " + MOST);
        }
    }

    @Test
    void givenATierOfOneSizeOrNone_whenAskedForRoom_thenThatIsRefused() throws IOException {
        CudaTier fixed = CudaTier.withDriver("GPU", fakeCuda::open, FIRST);
        try (TieredKvCache cache = TieredKvCache.builder()
                        .hostBytes(32 << 20)
                        .prefaultInBackground(false)
                        .tier(fixed)
                        .build();
                EngineIpcServer _ = EngineIpcServer.open(
                        cache,
                        fixed,
                        fakeCuda::open,
                        Map.of(TwoLayerPool.NAME, TwoLayerPool.SPACE),
                        folder.resolve("door"));
                EngineIpcServer _ = EngineIpcServer.open(
                        cache,
                        (CudaTier) null,
                        fakeCuda::open,
                        Map.of(TwoLayerPool.NAME, TwoLayerPool.SPACE),
                        folder.resolve("none"));
                PooledEngine engine = engine();
                PooledEngine without = new PooledEngine(fakeCuda.open(), folder.resolve("none"), arena, 7)) {
            awaitTrue(() -> fixed.bytes() > 0);
            engine.engine()
                    .expectRefused(
                            EngineCodec.ROOM, room(REGION, 0), "it takes " + fixed.bytes() + " to " + fixed.bytes());
            without.engine()
                    .expectRefused(EngineCodec.ROOM, room(REGION, 0), "keeps no blocks in this device's memory");
        }
    }

    @Test
    void givenBlocksThatAreHeld_whenAnEngineAsksForRoom_thenTheyAreWaitedForAndTheSessionGoesOn() throws IOException {
        try (TieredKvCache cache = store();
                EngineIpcServer _ = door(cache);
                Worker worker = new Worker()) {
            assertThat(tier.resize(MOST, LONG).after()).isEqualTo(MOST);
            for (int prompt = 0; prompt < Worker.PROMPTS; prompt++) {
                worker.store(prompt);
            }
            cache.flush(LONG);
            EngineClient client = worker.engine.client();
            List<DeviceBlockMap> held = new ArrayList<>();
            try {
                for (int prompt = 0; prompt < Worker.PROMPTS; prompt++) {
                    held.add(onDevice(prompt));
                }
                assertThat(held.stream().filter(EngineRoomTest::hasBoth))
                        .as("prompts on the device, 64 in a region")
                        .hasSizeGreaterThan(6 * 64);
                client.ask(EngineCodec.CHAIN, EngineClient.chain(0, 0, 0, Worker.tokens(0)));
                Resized late = tier.resize(LEAST, Duration.ofMillis(50));
                assertThat(late.after()).isGreaterThan(LEAST);
                assertThat(late.reason()).isEqualTo("blocks that engines or sequences hold did not leave in time");
                int first = client.send(EngineCodec.ROOM, room(late.after() - LEAST, LONG_MILLIS), -1);
                worker.load(0);
                int second = client.send(EngineCodec.ROOM, room(1, 0), -1);
                assertThatExceptionOfType(EngineClient.Refused.class)
                        .isThrownBy(() -> client.answer(second))
                        .withMessage("a request for room is not answered yet");
                held.forEach(DeviceBlockMap::close);
                held.clear();
                assertThat(client.answer(first).getLong()).isEqualTo(late.after() - LEAST);
            } finally {
                held.forEach(DeviceBlockMap::close);
            }
        }
    }

    private DeviceBlockMap onDevice(int prompt) {
        return tier.tier().acquireEach(BlockChain.of(TwoLayerPool.SPACE, Worker.tokens(prompt)), 0, 2);
    }

    private static boolean hasBoth(DeviceBlockMap map) {
        return map.contains(0) && map.contains(1);
    }

    /// An engine stores and loads, a second one takes room and returns it, and the operator sets sizes.
    @Test
    void givenEnginesAtWork_whenTheTierIsResized_thenEveryLoadComesWithItsBytesAndTheDeviceHasTheRest()
            throws Exception {
        try (DeviceDriver other = fakeCuda.open();
                TieredKvCache cache = store();
                EngineIpcServer _ = door(cache);
                Worker worker = new Worker();
                PooledEngine greedy = engine()) {
            for (int prompt = 0; prompt < Worker.PROMPTS; prompt++) {
                worker.store(prompt);
            }
            long all = other.freeMemoryBytes() + tier.bytes();
            AtomicBoolean ended = new AtomicBoolean();
            CompletableFuture<Integer> loads = CompletableFuture.supplyAsync(() -> worker.loadUntil(ended));
            Random random = new Random(1);
            for (int step = 0; step < 40; step++) {
                long size = LEAST + REGION * random.nextInt(11);
                assertThat(tier.resize(size, LONG).reason()).isEmpty();
                assertThat(other.freeMemoryBytes() + tier.bytes()).isEqualTo(all);
                long room = Math.min(size - LEAST, 3 * REGION);
                if (room > 0) {
                    assertThat(ask(greedy, room)).isEqualTo(room);
                    assertThat(other.freeMemoryBytes()).isEqualTo(all - size + room);
                    assertThat(ask(greedy, -room)).isEqualTo(-room);
                }
            }
            ended.set(true);
            assertThat(loads.get()).isGreaterThan(100);
            cache.validate();
        }
    }

    /// An engine whose prompts of two blocks each have pages of their own choice.
    private final class Worker implements AutoCloseable {

        static final int PROMPTS = 800;
        private static final int SOURCES = 36;
        private static final int[] TARGET = {36, 37, 38, 39};

        private final InProcessEngine engine;
        private final MemorySegment content;

        Worker() throws IOException {
            content = arena.allocate(TwoLayerPool.OFFSET + TwoLayerPool.LAYER_BYTES, 8);
            new BlockContent(77).fill(content);
            engine = new InProcessEngine(fakeCuda.open(), folder.resolve("door"), arena, content.byteSize());
            engine.write(content);
            engine.sendPoolAndChain();
        }

        private static int[] pages(int prompt) {
            return new Random(prompt)
                    .ints(0, SOURCES)
                    .distinct()
                    .limit(TARGET.length)
                    .toArray();
        }

        static int[] tokens(int prompt) {
            return IntStream.range(0, 2 * TwoLayerPool.BLOCK_TOKENS)
                    .map(token -> 1_000 + prompt * 100 + token)
                    .toArray();
        }

        private void tell(int prompt) throws IOException {
            engine.client().ask(EngineCodec.CHAIN, EngineClient.chain(0, 0, 0, tokens(prompt)));
        }

        void load(int prompt) throws IOException {
            tell(prompt);
            ByteBuffer answer = engine.client().ask(EngineCodec.LOAD, EngineClient.blocks(0, 0, 2, -1, TARGET));
            assertThat(answer.getLong()).isEqualTo(2);
        }

        void store(int prompt) throws IOException {
            tell(prompt);
            ByteBuffer stored = engine.client().ask(EngineCodec.STORE, EngineClient.blocks(0, 0, 2, -1, pages(prompt)));
            assertThat(stored.getLong()).isEqualTo(2);
            engine.client().seal(stored.getLong());
        }

        int loadUntil(AtomicBoolean ended) {
            Random random = new Random(2);
            int loads = 0;
            try {
                while (!ended.get() || loads <= 100) {
                    int prompt = random.nextInt(PROMPTS);
                    if (random.nextBoolean()) {
                        store(PROMPTS + random.nextInt(PROMPTS / 4));
                    }
                    load(prompt);
                    int[] from = pages(prompt);
                    for (int page = 0; page < TARGET.length; page++) {
                        for (int side = 0; side < TwoLayerPool.SIDES; side++) {
                            MemorySegment.copy(
                                    content, at(side, from[page]), content, at(side, TARGET[page]), TwoLayerPool.PIECE);
                        }
                    }
                    awaitTrue(() -> engine.read(content.byteSize()).mismatch(content) == -1);
                    loads++;
                }
                return loads;
            } catch (IOException gone) {
                throw new AssertionError(gone);
            }
        }

        private static long at(int side, int page) {
            return TwoLayerPool.OFFSET + ((long) side * TwoLayerPool.PAGES + page) * TwoLayerPool.PIECE;
        }

        @Override
        public void close() {
            engine.close();
        }
    }
}
