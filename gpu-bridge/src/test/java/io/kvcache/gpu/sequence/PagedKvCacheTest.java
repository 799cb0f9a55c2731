package io.kvcache.gpu.sequence;

import static io.kvcache.gpu.sequence.PagedEngine.BLOCK_TOKENS;
import static io.kvcache.gpu.sequence.PagedEngine.LONG;
import static io.kvcache.gpu.sequence.PagedEngine.SPACE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.Match;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.contract.Pause;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.gpu.cuda.CudaDriver;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.cuda.FaultInjection;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.host.FakeDeviceDriver;
import io.kvcache.gpu.sequence.PagedEngine.Request;
import io.kvcache.gpu.sequence.PagedKvCache.Admission;
import io.kvcache.gpu.tier.CudaTier;
import io.kvcache.gpu.tier.DeviceBlockTable;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.IntStream;
import jcuda.driver.CUstream;
import jcuda.driver.JCudaDriver;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Sequences over pages of a GPU tier, each row of which is compared with a naive model; over the stand-in for the
/// driver, and unchanged on a real device.
final class PagedKvCacheTest {

    private static final long TIER_BYTES = 16L << 20;
    private static final int PAGES = 128;
    private static final int DEVICE_LOST = 719;
    private static final long HOST_BYTES = 32 << 20;

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final CudaTier tier = CudaTier.withDriver("GPU", fakeCuda::open, TIER_BYTES);
    private TieredKvCache cache = builder().build();
    private PagedEngine engine = new PagedEngine(fakeCuda, cache, tier, PAGES);

    private BlockTable ballast = BlockTable.empty(0);

    @TempDir
    private Path folder;

    @SuppressWarnings("NullAway.Init") // given by JUnit
    PagedKvCacheTest() {}

    @AfterEach
    void close() {
        engine.close();
        ballast.close();
        cache.validate();
        cache.close();
        assertThat(fakeCuda.left()).isEmpty();
    }

    private TieredKvCacheBuilder builder() {
        return TieredKvCache.builder()
                .hostBytes(HOST_BYTES)
                .policy(PolicyKind.LRU)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .admission(AdmissionKind.ALWAYS)
                .tier(tier);
    }

    private void reopen(TieredKvCacheBuilder builder, int pages) {
        engine.close();
        cache.close();
        cache = builder.build();
        engine = new PagedEngine(fakeCuda, cache, tier, pages);
    }

    /// Pins nearly all of host memory.
    private void fillHostMemory() {
        Namespace large = Namespace.of("ballast", BlockShape.kv(16, 8, 128, 16, Dtype.BF16));
        cache.register(large);
        BlockChain chain = BlockChain.of(large, new int[16 * (int) (HOST_BYTES >> 20)]);
        int blocks = 0;
        boolean hasRoom = true;
        while (hasRoom && blocks < chain.length()) {
            try (BlockWriter writer = cache.put(chain, blocks, 0, Duration.ZERO)) {
                hasRoom = writer.outcome() == PutOutcome.RESERVED;
                if (hasRoom) {
                    writer.segment().fill((byte) 1);
                    writer.seal();
                    ballast.close();
                    ballast = cache.acquire(chain.prefix(++blocks));
                }
            }
        }
        assertThat(ballast.blocks()).isEqualTo(blocks).isGreaterThan(10);
        ballast.close();
        ballast = cache.acquire(chain.prefix(blocks - 2));
    }

    private static int[] prompt(int seed, int tokens) {
        return IntStream.range(seed * 1000, seed * 1000 + tokens).toArray();
    }

    private static void until(BooleanSupplier so) {
        long since = System.nanoTime();
        while (!so.getAsBoolean()) {
            assertThat(System.nanoTime() - since).as("nanoseconds").isLessThan(TimeUnit.SECONDS.toNanos(60));
            Pause.briefly();
        }
    }

    @Test
    void givenAPromptThatWasComputed_whenAnotherBegins_thenItSharesThePagesWhereTheyLie() {
        try (Request first = engine.begin(prompt(1, 40));
                Request second = engine.begin(prompt(1, 44))) {
            assertThat(engine.computed).isEqualTo(40 + 4);
            for (int page = 0; page < 5; page++) {
                assertThat(second.sequence.page(page)).isEqualTo(first.sequence.page(page));
            }
            first.verify();
            second.verify();
            assertThat(first.grow(7)).isTrue();
            second.verify();
        }
    }

    @Test
    void givenTheWholePrompt_whenBegun_thenItsLastTokenIsLeftToCompute() {
        engine.begin(prompt(1, 16)).close();
        try (Request again = engine.begin(prompt(1, 16))) {
            assertThat(engine.computed).isEqualTo(16 + 8);
            again.verify();
        }
    }

    @Test
    void givenASequenceThatEnded_whenItsPromptComesAgain_thenNothingIsCopied() {
        assumeThat(fakeCuda.canHold()).as("a driver whose bytes are counted").isTrue();
        engine.begin(prompt(1, 41)).close();
        assertThat(engine.paged.flush(LONG)).isTrue();
        long before = fakeCuda.bytesToDevice();
        try (Sequence again = engine.paged.begin(prompt(1, 41), LONG)) {
            assertThat(again.tokens()).isEqualTo(40);
            assertThat(fakeCuda.bytesToDevice()).isEqualTo(before);
        }
    }

    @Test
    void givenAFullPage_whenTheStoreWritesItToTheTier_thenThePageIsTheCopy() {
        assumeThat(fakeCuda.canHold()).as("a driver whose bytes are counted").isTrue();
        try (Request request = engine.begin(prompt(1, 41))) {
            assertThat(engine.paged.flush(LONG)).isTrue();
            BlockChain chain = request.sequence.chain();
            assertThat(cache.match(chain).blocks()).isEqualTo(5);
            long before = fakeCuda.bytesToDevice();
            until(() -> {
                try (DeviceBlockTable table = tier.acquire(chain, 0)) {
                    return table.endBlock() == 5;
                }
            });
            try (DeviceBlockTable table = tier.acquire(chain, 0)) {
                for (int block = 0; block < 5; block++) {
                    assertThat(table.span(block)).isEqualTo(request.sequence.page(block));
                }
            }
            assertThat(fakeCuda.bytesToDevice()).as("bytes over the bus").isEqualTo(before);
            until(() -> cache.match(chain).deviceBlocks() == 5);
        }
    }

    @Test
    void givenWhatIsInHostMemoryAlone_whenBegun_thenItIsLoaded() {
        engine.begin(prompt(1, 41)).close();
        assertThat(engine.paged.flush(LONG)).isTrue();
        engine.close();
        engine = new PagedEngine(fakeCuda, cache, tier, PAGES);
        try (Request again = engine.begin(prompt(1, 41))) {
            assertThat(engine.computed).isEqualTo(1);
            again.verify();
            try (Request other = engine.begin(prompt(1, 42))) {
                assertThat(other.sequence.page(4)).isEqualTo(again.sequence.page(4));
                other.verify();
            }
        }
    }

    @Test
    void givenAFork_whenBothGoOn_thenTheLastPageIsCopiedOnce() {
        try (Request first = engine.begin(prompt(1, 20));
                Request second = first.fork()) {
            assertThat(second.sequence.page(2)).isEqualTo(first.sequence.page(2));
            assertThat(engine.paged.pageCounts().heldPages()).isEqualTo(3);
            assertThat(second.grow(1)).isTrue();
            assertThat(first.grow(2)).isTrue();
            assertThat(second.sequence.page(2)).isNotEqualTo(first.sequence.page(2));
            assertThat(engine.paged.pageCounts().heldPages()).isEqualTo(4);
            first.verify();
            second.verify();
        }
    }

    @Test
    void givenWhatWasReserved_whenForked_thenItIsNotToBeWritten() {
        try (Request first = engine.begin(prompt(1, 20))) {
            assertThat(first.sequence.reserve(2, LONG)).isTrue();
            first.fork().close();
            assertThatIllegalStateException()
                    .isThrownBy(() -> first.sequence.append(1))
                    .withMessage("1 tokens behind 20; reserved: 0");
        }
    }

    @Test
    void givenTokensThatAreForgotten_whenOthersCome_thenBlocksStayAsTheyWere() {
        try (Request first = engine.begin(prompt(1, 41));
                Request second = first.fork()) {
            second.truncate(19);
            assertThat(second.grow(3, 4, 5, 6, 7, 8)).isTrue();
            second.verify();
            first.verify();
            second.truncate(16);
            second.verify();
            second.truncate(0);
            assertThat(second.grow(9)).isTrue();
            second.verify();
        }
    }

    @Test
    void givenAPreemptedSequence_whenResumed_thenAllIsThere() {
        try (Request request = engine.begin(prompt(1, 45))) {
            assertThat(request.sequence.preempt(LONG)).isTrue();
            assertThat(engine.paged.pageCounts().heldPages()).isZero();
            assertThatIllegalStateException()
                    .isThrownBy(() -> request.sequence.page(0))
                    .withMessage("the sequence is preempted");
            for (int seed = 2; seed < 12; seed++) { // takes all pages
                engine.begin(prompt(seed, 99)).close();
            }
            assertThat(request.sequence.resume(LONG)).isTrue();
            request.verify();
            assertThat(request.grow(1, 2, 3, 4, 5)).isTrue();
            request.verify();
        }
    }

    @Test
    void givenBlocksThatAreNowhere_whenResumed_thenTheRestIsCutOff() {
        try (Request request = engine.begin(prompt(1, 45))) {
            assertThat(request.sequence.preempt(LONG)).isTrue();
            until(() -> cache.drop(request.sequence.chain(), 2) + 1 > 0
                    && cache.match(request.sequence.chain()).blocks() == 2);
            for (int seed = 2; seed < 12; seed++) {
                engine.begin(prompt(seed, 99)).close();
            }
            assertThat(request.sequence.resume(LONG)).isTrue();
            assertThat(request.sequence.tokens()).isEqualTo(16);
            assertThat(request.catchUp()).isTrue();
            request.verify();
        }
    }

    @Test
    void givenADrop_whenTheTierHeardOfIt_thenItIsComputedAgain() {
        engine.begin(prompt(1, 41)).close();
        assertThat(engine.paged.flush(LONG)).isTrue();
        BlockChain chain = BlockChain.of(SPACE, prompt(1, 40));
        until(() -> cache.match(chain).deviceBlocks() == 5);
        cache.drop(chain, 3);
        until(() -> engine.paged.admission(prompt(1, 41), 0).sharedPages() == 3);
        try (Request again = engine.begin(prompt(1, 41))) {
            again.verify();
        }
        assertThat(engine.computed).isEqualTo(41 + 17);
    }

    @Test
    void givenNoRoom_whenBegun_thenItIsRefusedAndOthersStay() {
        int tokens = PAGES / 2 * BLOCK_TOKENS;
        Admission before = engine.paged.admission(prompt(1, tokens), 0);
        assertThat(before).isEqualTo(new Admission(PAGES / 2, 0, PAGES, 0));
        try (Request first = engine.begin(prompt(1, tokens));
                Request second = engine.begin(prompt(2, tokens - 9))) {
            Admission none = engine.paged.admission(prompt(3, 20), 0);
            assertThat(none.fits()).isFalse();
            assertThat(none.availablePages()).isEqualTo(1);
            assertThat(engine.tryBegin(Duration.ofMillis(100), prompt(3, 20))).isNull();
            assertThat(second.sequence.reserve(20, Duration.ofMillis(100))).isFalse();
            assertThat(second.grow(1)).isTrue();
            first.verify();
            second.verify();
        }
        Admission after = engine.paged.admission(prompt(3, 20), 4);
        assertThat(after.fits()).isTrue();
        assertThat(after.evictedPages()).isBetween(0, 3);
        engine.begin(prompt(3, 20)).close();
        assertThat(engine.paged.admission(prompt(4, 8 * (PAGES - 1)), 0).evictedPages())
                .isGreaterThan(PAGES / 2);
    }

    @Test
    void givenBatchTables_whenUpdated_thenTheDeviceHasThePagesOfEach() {
        assumeThat(fakeCuda.canHold()).as("a driver whose bytes are counted").isTrue();
        try (Request first = engine.begin(prompt(1, 40));
                Request second = engine.begin(prompt(1, 50));
                BatchTables tables = engine.paged.openTables(2, 8)) {
            tables.update(List.of(first.sequence, second.sequence));
            requireTables(tables, List.of(first, second));
            assertThat(first.grow(1)).isTrue();
            long before = fakeCuda.bytesToDevice();
            tables.update(List.of(first.sequence, second.sequence));
            engine.finish();
            assertThat(fakeCuda.bytesToDevice() - before).isEqualTo(4);
            requireTables(tables, List.of(first, second));
            tables.update(List.of(second.sequence));
            requireTables(tables, List.of(second));
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> tables.update(List.of(first.sequence, first.sequence, first.sequence)))
                    .withMessage("3 sequences; the tables have room for 2");
            assertThat(first.grow(prompt(3, 10))).isTrue();
            assertThat(second.grow(prompt(3, 30))).isTrue();
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> tables.update(List.of(first.sequence, second.sequence)))
                    .withMessage("10 pages of a sequence; the tables have room for 8");
            tables.update(List.of(first.sequence));
            requireTables(tables, List.of(first));
            Request ended = second.fork();
            ended.close();
            assertThatIllegalStateException()
                    .isThrownBy(() -> tables.update(List.of(ended.sequence)))
                    .withMessage("the sequence has ended");
        }
    }

    private void requireTables(BatchTables tables, List<Request> batch) {
        try (Arena arena = Arena.ofShared()) {
            MemorySegment here = arena.allocate(tables.span().bytes(), 64);
            engine.stream.copyToHost(tables.span().address(), here);
            engine.finish();
            for (int row = 0; row < batch.size(); row++) {
                Sequence sequence = batch.get(row).sequence;
                for (int page = 0; page < sequence.pages(); page++) {
                    long number = here.getAtIndex(JAVA_INT, row * 8L + page);
                    assertThat(tables.base().plus(number * BatchTables.UNIT_BYTES))
                            .isEqualTo(sequence.page(page).address());
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6})
    void givenManySequences_whenTheyShareForkGrowArePreemptedAndEnd_thenEveryRowIsRight(long seed) {
        TieredKvCacheBuilder builder = builder();
        reopen(seed % 3 == 0 ? builder.disk(folder, 64 << 20) : builder, 48 + 16 * (int) seed);
        if (seed % 2 == 0) {
            fillHostMemory();
        }
        Random random = new Random(seed);
        List<Request> requests = new ArrayList<>();
        List<Request> preempted = new ArrayList<>();
        int begun = 0;
        for (int step = 0; step < 600; step++) {
            int action = random.nextInt(12);
            if (action < 3 && begun < 100) {
                Request request = engine.tryBegin(Duration.ofMillis(50), randomPrompt(random));
                if (request == null) {
                    makeRoom(requests, preempted, random);
                } else {
                    begun++;
                    requests.add(request);
                }
            } else if (!requests.isEmpty()) {
                Request request = requests.get(random.nextInt(requests.size()));
                switch (action) {
                    case 3 -> requests.add(request.fork());
                    case 4 -> request.truncate(random.nextInt(request.length() + 1));
                    case 5 -> preempt(request, requests, preempted);
                    case 6 -> {
                        requests.remove(request);
                        request.close();
                    }
                    case 7 -> request.verify();
                    case 8 -> resume(requests, preempted, random);
                    default -> {
                        if (!tryGrow(request, random)) {
                            makeRoom(requests, preempted, random);
                        }
                    }
                }
            }
        }
        assertThat(begun).isGreaterThan(40);
        requests.forEach(Request::verify);
        requests.forEach(Request::close);
        while (!preempted.isEmpty()) {
            Request request = preempted.getLast();
            resume(requests, preempted, random);
            if (!preempted.contains(request)) {
                request.verify();
                request.close();
            }
        }
        assertThat(engine.paged.flush(LONG)).isTrue();
        assertThat(engine.paged.pageCounts().heldPages()).isZero();
    }

    /// Prompts of a few families, so that beginnings are shared.
    private static int[] randomPrompt(Random random) {
        int[] common = prompt(1 + random.nextInt(4), 8 * random.nextInt(6));
        int[] own = prompt(100 + random.nextInt(40), 1 + random.nextInt(30));
        return IntStream.concat(IntStream.of(common), IntStream.of(own)).toArray();
    }

    private static boolean tryGrow(Request request, Random random) {
        int[] more = random.ints(1 + random.nextInt(12), 0, 3).toArray();
        if (!request.sequence.reserve(
                more.length + request.length() - request.sequence.tokens(), Duration.ofMillis(50))) {
            return false;
        }
        assertThat(request.grow(more)).isTrue();
        return true;
    }

    private static void preempt(Request request, List<Request> requests, List<Request> preempted) {
        assertThat(request.sequence.preempt(LONG)).isTrue();
        requests.remove(request);
        preempted.add(request);
    }

    private static void resume(List<Request> requests, List<Request> preempted, Random random) {
        if (preempted.isEmpty()) {
            return;
        }
        Request request = preempted.getLast();
        if (request.sequence.resume(Duration.ofMillis(50))) {
            preempted.remove(request);
            if (request.catchUp()) {
                requests.add(request);
            } else {
                request.close();
            }
        } else if (!requests.isEmpty()) {
            requests.remove(random.nextInt(requests.size())).close();
        }
    }

    private static void makeRoom(List<Request> requests, List<Request> preempted, Random random) {
        if (requests.isEmpty()) {
            return;
        }
        Request victim = requests.get(random.nextInt(requests.size()));
        if (random.nextBoolean()) {
            preempt(victim, requests, preempted);
        } else {
            requests.remove(victim);
            victim.close();
        }
    }

    @Test
    void givenBlocksOnDiskAlone_whenBegunByLayers_thenTheFirstLayersAreThereBeforeTheOthers() {
        BlockShape shape = BlockShape.kv(4, 8, 64, 64, Dtype.BF16); // layers of 128 KiB
        Namespace large = Namespace.of("large", shape);
        BlockChain chain = BlockChain.of(large, prompt(1, 6 * 64));
        reopen(builder().disk(folder, 64 << 20), PAGES);
        cache.register(large);
        for (int block = 0; block < 6; block++) {
            try (BlockWriter writer = cache.put(chain, block, 0, LONG)) {
                BlockContent.of(chain.key(block)).fill(writer.segment());
                writer.seal();
            }
        }
        assertThat(cache.flush(LONG)).isTrue();
        reopen(builder().disk(folder, 64 << 20), PAGES);
        try (DeviceDriver driver = fakeCuda.open();
                DeviceStream stream = driver.openStream(Priority.NORMAL);
                PagedKvCache paged = PagedKvCache.open(cache, tier, driver, stream, large, 10 * shape.bytes());
                Sequence sequence = paged.beginByLayers(prompt(1, 6 * 64 + 1), LONG, 1)) {
            assertThat(sequence.tokens()).isEqualTo(6 * 64);
            assertThatIllegalStateException()
                    .isThrownBy(() -> sequence.append(1))
                    .withMessage("the sequence is being loaded; await all layers first");
            for (int layers = 1; layers <= 4; layers++) {
                assertThat(sequence.awaitLayers(layers, LONG)).isTrue();
                assertThat(sequence.tokens()).isEqualTo(6 * 64);
                for (int block = 0; block < 6; block++) {
                    requireLayers(
                            driver,
                            stream,
                            sequence.page(block),
                            BlockContent.of(chain.key(block)),
                            layers * shape.bytes() / 4);
                }
            }
            try (Sequence other = paged.begin(prompt(1, 6 * 64 + 1), LONG)) {
                assertThat(other.page(5)).isEqualTo(sequence.page(5));
            }
            sequence.append(1);
        }
    }

    private static void requireLayers(
            DeviceDriver driver, DeviceStream stream, DeviceSpan page, BlockContent content, long bytes) {
        try (Arena arena = Arena.ofShared();
                DeviceEvent event = driver.openEvent()) {
            MemorySegment here = arena.allocate(bytes, 64);
            MemorySegment expected = arena.allocate(page.bytes(), 64);
            content.fill(expected);
            stream.copyToHost(page.address(), here);
            stream.record(event);
            assertThat(event.await(TimeUnit.SECONDS.toNanos(60))).isTrue();
            assertThat(here.mismatch(expected.asSlice(0, bytes))).isEqualTo(-1);
        }
    }

    @Test
    void givenASequenceThatEndsWhileItIsLoaded_whenOthersTakeItsPages_thenTheyAreRight() {
        assumeThat(fakeCuda.canHold()).as("a driver that can be delayed").isTrue();
        engine.begin(prompt(1, 81)).close();
        assertThat(engine.paged.flush(LONG)).isTrue();
        engine.close();
        fakeCuda.delay(300);
        engine = new PagedEngine(fakeCuda, cache, tier, 12);
        engine.paged.begin(prompt(1, 81), LONG).close();
        try (Request other = engine.begin(prompt(2, 90))) {
            other.verify();
        }
        Sequence given = engine.paged.beginByLayers(prompt(1, 81), LONG, 1);
        if (given != null) {
            given.close();
        }
        try (Request other = engine.begin(prompt(3, 90))) {
            other.verify();
        }
    }

    @Test
    void givenABlockOfTheTier_whenItsSequenceEndsBeforeTheStreamHasReadIt_thenItIsNotWrittenOver() throws Exception {
        assumeThat(fakeCuda.canHold()).as("a driver that can be delayed").isTrue();
        reopen(builder(), 64);
        BlockChain chain = BlockChain.of(SPACE, prompt(7, 16));
        putAndAwaitOnDevice(chain);
        try (Arena arena = Arena.ofShared()) {
            MemorySegment read = arena.allocate(PagedEngine.SHAPE.bytes(), 64);
            MemorySegment expected = arena.allocate(PagedEngine.SHAPE.bytes(), 64);
            BlockContent.of(chain.key(0)).fill(expected);
            Sequence sequence = engine.paged.begin(prompt(7, 20), LONG);
            assertThat(sequence.tokens()).isEqualTo(16);
            fakeCuda.delay(2000);
            DeviceSpan scratch = engine.driver.allocate(4096);
            for (int i = 0; i < 500; i++) {
                engine.stream.fill(scratch, (byte) i); // a second of work
            }
            engine.stream.copyToHost(sequence.page(0).address(), read);
            sequence.close();
            fakeCuda.delay(0);
            for (int seed = 100; seed < 4000; seed++) { // more than the tier holds
                putBlock(prompt(seed, 8));
            }
            engine.finish();
            assertThat(read.mismatch(expected)).isEqualTo(-1);
            engine.driver.free(scratch);
        }
    }

    private void putAndAwaitOnDevice(BlockChain chain) {
        for (int block = 0; block < chain.length(); block++) {
            try (BlockWriter writer = cache.put(chain, block, 0, LONG)) {
                BlockContent.of(chain.key(block)).fill(writer.segment());
                writer.seal();
            }
        }
        until(() -> cache.match(chain).deviceBlocks() == chain.length());
    }

    @Test
    void givenBlocksThatTheStoreDoesNotKnow_whenDropped_thenTheyAndAllBelowThemAreComputedAgain() {
        reopen(builder().admission(AdmissionKind.SECOND_HIT), PAGES);
        fillHostMemory();
        engine.begin(prompt(1, 41)).close();
        BlockChain chain = BlockChain.of(SPACE, prompt(1, 40));
        engine.paged.drop(chain.prefix(3), 2);
        assertThat(engine.paged.admission(prompt(1, 41), 0).sharedPages()).isEqualTo(2);
        until(
                () -> { // the tier may hear of the drop after block 2 is here again
                    try (Request again = engine.begin(prompt(1, 25))) {
                        again.verify();
                    }
                    return engine.paged.admission(prompt(1, 41), 0).sharedPages()
                            == 3; // and 3 and 4, below it, are not
                });
        assertThat(engine.paged.flush(LONG)).isTrue();
    }

    @Test
    void givenPagesThatWaitForTheStore_whenDropped_thenTheyDoNotComeBackThere() {
        for (int seed = 0; seed < 30; seed++) {
            engine.begin(prompt(seed, 25)).close();
            engine.paged.drop(BlockChain.of(SPACE, prompt(seed, 24)), 0);
        }
        assertThat(engine.paged.flush(LONG)).isTrue();
        for (int seed = 0; seed < 30; seed++) {
            assertThat(cache.match(BlockChain.of(SPACE, prompt(seed, 24))).blocks())
                    .isZero();
        }
    }

    @Test
    void givenADroppedNamespace_whenTheTierHeardOfIt_thenNothingOfItIsFound() {
        engine.begin(prompt(1, 41)).close();
        assertThat(engine.paged.flush(LONG)).isTrue();
        BlockChain chain = BlockChain.of(SPACE, prompt(1, 40));
        until(() -> cache.match(chain).deviceBlocks() == 5);
        engine.begin(prompt(2, 41)).close(); // perhaps not known to the tier yet
        assertThat(engine.paged.flush(LONG)).isTrue();
        cache.drop(SPACE);
        until(() -> engine.paged.admission(prompt(1, 41), 0).sharedPages() == 0
                && engine.paged.admission(prompt(2, 41), 0).sharedPages() == 0);
    }

    @Test
    void givenAPoolFullOfCachedPages_whenBegunWithoutWaiting_thenItSucceedsSoon() {
        reopen(builder(), 64);
        for (int seed = 0; seed < 8; seed++) {
            engine.begin(prompt(seed, 80)).close();
        }
        assertThat(engine.paged.flush(LONG)).isTrue();
        until(() -> {
            engine.paged.poll();
            Sequence sequence = engine.paged.begin(prompt(50, 320), Duration.ZERO);
            if (sequence != null) {
                sequence.close();
            }
            return sequence != null;
        });
    }

    @Test
    void givenAPromptThatCannotFit_whenBegun_thenNothingIsEvictedForIt() {
        reopen(builder(), 64);
        try (Request held = engine.begin(prompt(1, 200))) {
            engine.begin(prompt(2, 200)).close();
            assertThat(engine.paged.flush(LONG)).isTrue();
            assertThat(engine.tryBegin(LONG, prompt(3, 400))).isNull();
            assertThat(engine.paged.admission(prompt(2, 201), 0).sharedPages()).isEqualTo(25);
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> engine.paged.begin(prompt(4, 65 * BLOCK_TOKENS), LONG))
                    .withMessage("a prompt of 520 tokens takes 65 pages; the paged cache has 64");
            held.verify();
        }
    }

    @Test
    void givenSeveralPagedCaches_whenOpened_thenTheyShareTheRoom() {
        long most = tier.maxPageBytes();
        Namespace odd = Namespace.of("odd", BlockShape.kv(3, 8, 64, 100, Dtype.BF16)); // 614,400 bytes
        try (DeviceDriver driver = fakeCuda.open();
                DeviceStream stream = driver.openStream(Priority.NORMAL);
                PagedKvCache paged = PagedKvCache.open(cache, tier, driver, stream, odd, most)) {
            int available = paged.admission(new int[1], 0).availablePages();
            assertThat(available)
                    .as("one a region of 1 MiB, and one is the engine's")
                    .isEqualTo((most >> 20) - 1);
            paged.begin(new int[available * 100], LONG).close();
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> new PagedEngine(fakeCuda, cache, tier, 10))
                    .withMessage("40960 bytes of GPU for pages of 4096; beside other paged caches it has 0");
        }
        engine.begin(prompt(1, 30)).close();
        engine.close();
        until(() -> {
            try {
                engine = new PagedEngine(fakeCuda, cache, tier, (int) (most / PagedEngine.SHAPE.bytes()));
                return true;
            } catch (IllegalArgumentException notYet) {
                return false;
            }
        });
        engine.begin(prompt(2, 3000)).close();
    }

    @Test
    void givenADriverThatIsClosed_whenUsed_thenItSaysSoAndNothingLeaks() {
        DeviceDriver closed = fakeCuda.open();
        DeviceStream stream = closed.openStream(Priority.NORMAL);
        stream.close();
        closed.close();
        for (int i = 0; i < 20; i++) {
            assertThatIllegalStateException()
                    .isThrownBy(() -> PagedKvCache.open(cache, tier, closed, stream, SPACE, 1 << 20))
                    .withMessageContaining("closed");
        }
        DeviceDriver other = fakeCuda.open();
        DeviceStream of = other.openStream(Priority.NORMAL);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> PagedKvCache.open(cache, tier, other, engine.stream, SPACE, 1 << 20))
                .withMessage("the stream is not one of the driver");
        PagedKvCache paged = PagedKvCache.open(cache, tier, other, of, SPACE, 1 << 20);
        Sequence sequence = paged.begin(prompt(1, 20), LONG);
        sequence.append(prompt(1, 20));
        FaultInjection.close(other);
        paged.close();
        try (Request again = engine.begin(prompt(2, 100))) {
            again.verify();
        }
    }

    @Test
    void givenADeviceInJava_whenUsed_thenItServesAsAGpuDoes() {
        CudaTier pretended = CudaTier.withDriver("a device", () -> FakeDeviceDriver.open(8 << 20), 4 << 20);
        try (TieredKvCache other = TieredKvCache.builder()
                        .hostBytes(HOST_BYTES)
                        .prefaultInBackground(false)
                        .failOnLeak(true)
                        .admission(AdmissionKind.ALWAYS)
                        .tier(pretended)
                        .build();
                PagedEngine paged = new PagedEngine(FakeDeviceDriver.open(8 << 20), other, pretended, 64);
                Request first = paged.begin(prompt(1, 41));
                Request second = first.fork()) {
            assertThat(second.grow(1, 2, 3)).isTrue();
            assertThat(first.sequence.preempt(LONG)).isTrue();
            until(() -> other.match(first.sequence.chain()).deviceBlocks() == 5);
            assertThat(first.sequence.resume(LONG)).isTrue();
            first.verify();
            second.verify();
        }
    }

    @Test
    void givenAVirtualThread_whenItAppends_thenItIsRefusedBeforeAnythingChanges() throws Exception {
        try (Request request = engine.begin(prompt(1, 20))) {
            assertThat(request.sequence.reserve(4, LONG)).isTrue();
            List<Throwable> refused = new ArrayList<>();
            Thread.ofVirtual()
                    .start(() -> {
                        try {
                            request.sequence.append(1, 2, 3, 4);
                        } catch (IllegalStateException virtual) {
                            refused.add(virtual);
                        }
                    })
                    .join();
            assertThat(refused).hasSize(1);
            request.verify();
            assertThat(request.grow(9, 9, 9, 9, 9)).isTrue();
            request.verify();
        }
    }

    @Test
    void givenAStreamOfTheEngines_whenAdopted_thenPagesAreOrderedByIt() {
        assumeThat(fakeCuda.canHold()).as("a driver that can be delayed").isTrue();
        CudaDriver driver = (CudaDriver) fakeCuda.open();
        assertThat(driver.info().name()).isNotEmpty(); // its context is this thread's
        CUstream made = new CUstream();
        assertThat(JCudaDriver.cuStreamCreateWithPriority(made, 1, 0)).isZero();
        DeviceStream adopted = driver.adoptStream(made);
        try (PagedKvCache paged = PagedKvCache.open(cache, tier, driver, adopted, SPACE, 1 << 20);
                Sequence sequence = paged.begin(prompt(1, 20), ChronoUnit.FOREVER.getDuration())) {
            fakeCuda.delay(1000);
            adopted.fill(sequence.page(0), (byte) 3);
            adopted.fill(sequence.page(1), (byte) 3);
            sequence.append(prompt(1, 20));
            fakeCuda.delay(0);
            assertThat(paged.flush(ChronoUnit.FOREVER.getDuration())).isTrue();
            try (BlockTable table = cache.acquire(sequence.chain())) {
                assertThat(table.readyEnd()).isEqualTo(2);
                assertThat(table.segment(1).get(ValueLayout.JAVA_BYTE, 4095)).isEqualTo((byte) 3);
            }
        }
        adopted.close();
        until(() -> JCudaDriver.cuStreamQuery(made) == 0);
        assertThat(JCudaDriver.cuStreamDestroy(made)).isZero();
        driver.close();
    }

    @Test
    void givenWhatItDoesNotTake_whenAsked_thenItIsRefusedByName() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> engine.paged.begin(new int[0], LONG))
                .withMessage("a prompt of 0 tokens; allowed: 1 and up");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> PagedKvCache.open(cache, tier, engine.driver, engine.stream, SPACE, TIER_BYTES))
                .withMessageContaining("of GPU for pages of 4096; it takes 4096 to ");
        assertThatIllegalStateException()
                .isThrownBy(() -> PagedKvCache.open(cache, tier, engine.driver, engine.stream, SPACE, 1 << 20))
                .withMessageContaining("a paged cache takes a driver of its own");
        Request request = engine.begin(prompt(1, 10));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> request.sequence.truncate(11))
                .withMessage("11 tokens; allowed: 0 to 10");
        assertThatIllegalStateException()
                .isThrownBy(() -> request.sequence.resume(LONG))
                .withMessage("the sequence is not preempted");
        request.close();
        assertThatIllegalStateException()
                .isThrownBy(() -> request.sequence.page(0))
                .withMessage("the sequence has ended");
    }

    @Test
    void givenADeviceThatIsLost_whenUsed_thenEveryCallSaysSoAndTheStoreGoesOn() {
        assumeThat(fakeCuda.canHold()).as("a driver that can be made to fail").isTrue();
        Logger log = Logger.getLogger("io.kvcache");
        log.setLevel(Level.OFF);
        try {
            Request request = engine.begin(prompt(1, 41));
            assertThat(engine.paged.flush(LONG)).isTrue();
            fakeCuda.loseDevice(DEVICE_LOST);
            assertThatExceptionOfType(DeviceException.class).isThrownBy(() -> engine.begin(prompt(1, 50)));
            assertThatExceptionOfType(DeviceException.class).isThrownBy(() -> request.grow(1, 2, 3, 4, 5, 6, 7, 8));
            BlockChain chain = BlockChain.of(SPACE, prompt(1, 40));
            int[] others = {1};
            until(() -> {
                putBlock(prompt(++others[0], 8)); // the tier notices when it has something to do
                return cache.match(chain).equals(new Match(0, 5, 0));
            });
            engine.close();
        } finally {
            log.setLevel(null);
        }
    }

    @Test
    void givenAStoreThatIsClosed_whenThePagedCacheIsUsed_thenItSaysSo() {
        Request request = engine.begin(prompt(1, 20));
        assertThat(engine.paged.flush(LONG)).isTrue();
        request.close();
        cache.close();
        assertThatExceptionOfType(DeviceException.class)
                .isThrownBy(() -> engine.begin(prompt(2, 20)))
                .withMessageContaining("the tier is out");
        reopen(builder(), PAGES);
    }

    private void putBlock(int[] tokens) {
        try (BlockWriter writer = cache.put(BlockChain.of(SPACE, tokens), 0, 0, LONG)) {
            assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
            writer.segment().fill((byte) 1);
            writer.seal();
        }
    }

    @Test
    void givenAStoreThatReads_whenItTakesBlocksOfPages_thenTheyAreRight() {
        fillHostMemory();
        for (int seed = 0; seed < 20; seed++) {
            engine.begin(prompt(seed, 81)).close();
        }
        assertThat(engine.paged.flush(LONG)).isTrue();
        for (int seed = 0; seed < 20; seed++) {
            BlockChain chain = BlockChain.of(SPACE, prompt(seed, 80));
            try (BlockTable table = cache.acquire(chain, 0, LONG)) {
                assertThat(table.await(table.endBlock(), LONG)).isEqualTo(table.endBlock());
            }
        }
    }
}
