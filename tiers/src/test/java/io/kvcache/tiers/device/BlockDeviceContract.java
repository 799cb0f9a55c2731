package io.kvcache.tiers.device;

import static io.kvcache.tiers.device.BlockDevice.ALIGNMENT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.core.check.BlockContent;
import io.kvcache.tiers.device.BlockDevice.CompletionSink;
import io.kvcache.tiers.simulation.BlockingDeviceIo;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Contract of every [BlockDevice]. Misuse is in [BlockDeviceMisuseContract].
public abstract class BlockDeviceContract {

    private static final long SIZE = 1 << 20;
    private static final int DEPTH = 8;
    private static final long AWAIT_NANOS = 5_000_000_000L;
    private static final int MAX_AWAITS = 1000;
    private static final int SPAN = 3 * ALIGNMENT;

    private final Arena arena = Arena.ofShared();
    private BlockDevice device = MemoryDevice.create(MemorySegment.ofArray(new byte[ALIGNMENT]), 1);

    /// Opens a device; a second one of a test, after the first was closed, has the bytes of the first.
    protected abstract BlockDevice open(long size, int depth) throws Exception;

    @BeforeEach
    void openDevice() throws Exception {
        device = open(SIZE, DEPTH);
    }

    @AfterEach
    void closeDevice() {
        device.close();
        arena.close();
    }

    @Test
    void givenNewDevice_whenAsked_thenSaysItsSizeAndDepth() {
        assertThat(device.size()).isEqualTo(SIZE);
        assertThat(device.depth()).isEqualTo(DEPTH);
        assertThat(device.inFlight()).isZero();
        assertThat(device.describe()).isNotBlank();
    }

    @Test
    void givenNothingWritten_whenRead_thenZeroes() {
        MemorySegment target = segment(SPAN);
        target.fill((byte) 1);
        assertThat(calls().read(target, SIZE - SPAN)).isEqualTo(IoOutcome.DONE);
        assertThat(target.mismatch(MemorySegment.ofArray(new byte[SPAN]))).isEqualTo(-1);
    }

    @Test
    void givenWrittenSpan_whenRead_thenTheSameBytesAndItsNeighboursUntouched() {
        calls().write(filled(SPAN, 1), ALIGNMENT);
        calls().write(filled(SPAN, 2), ALIGNMENT + SPAN);
        requireContent(ALIGNMENT, 1);
        requireContent(ALIGNMENT + SPAN, 2);
    }

    @Test
    void givenWholeDevice_whenWrittenInOneSpan_thenReadsTheSame() {
        calls().write(filled((int) SIZE, 3), 0);
        MemorySegment target = segment((int) SIZE);
        assertThat(calls().read(target, 0)).isEqualTo(IoOutcome.DONE);
        new BlockContent(3).requireEqual(target);
    }

    @Test
    void givenRandomWork_whenManyAreOnTheirWay_thenEveryReadAgreesWithTheModel() throws Exception {
        for (long seed : new long[] {1, 2, 3}) {
            System.out.println(getClass().getSimpleName() + ": seed " + seed);
            device.close();
            device = open(SIZE, DEPTH);
            calls().write(zeroes((int) SIZE), 0);
            try (Arena segments = Arena.ofShared()) {
                assertThat(new DeviceModel(device, segments, seed).run(500)).isEqualTo(500);
                device.close();
            }
            device = open(SIZE, DEPTH);
        }
    }

    @Test
    void givenRegisteredPools_whenSpansLieInThemAcrossThemAndElsewhere_thenAllArrive() {
        MemorySegment first = segment(4 * SPAN);
        MemorySegment second = segment(4 * SPAN);
        device.register(first.asSlice(0, 2 * SPAN));
        device.register(second);
        List<MemorySegment> targets = List.of(
                first.asSlice(SPAN, SPAN),
                first.asSlice(2 * SPAN - ALIGNMENT, SPAN),
                second.asSlice(0, SPAN),
                segment(SPAN));
        calls().write(filled(SPAN, 4), 0);
        for (MemorySegment target : targets) {
            assertThat(calls().read(target, 0)).isEqualTo(IoOutcome.DONE);
            new BlockContent(4).requireEqual(target);
        }
    }

    @Test
    void givenFullDepth_whenOneMoreIsQueued_thenItIsRefusedUntilOneWasDelivered() {
        MemorySegment target = segment(DEPTH * SPAN);
        for (int i = 0; i < DEPTH; i++) {
            assertThat(device.read(target.asSlice((long) i * SPAN, SPAN), 0, i)).isTrue();
        }
        MemorySegment more = segment(SPAN);
        assertThat(device.read(more, 0, 99)).isFalse();
        assertThat(device.write(more, 0, 99)).isFalse();
        assertThat(device.sync(99)).isFalse();
        assertThat(device.discard(0, SPAN, 99)).isFalse();
        assertThat(device.inFlight()).isEqualTo(DEPTH);
        assertThat(drain())
                .containsExactlyInAnyOrderElementsOf(
                        LongStream.range(0, DEPTH).boxed().toList());
        assertThat(device.read(more, 0, 99)).isTrue();
        assertThat(drain()).containsExactly(99L);
    }

    @Test
    void givenBatch_whenSubmittedTogether_thenEachTagComesBackOnce() {
        MemorySegment source = filled(DEPTH * SPAN, 5);
        for (int i = 0; i < DEPTH; i++) {
            device.write(source.asSlice((long) i * SPAN, SPAN), (long) i * SPAN, 1L << i);
        }
        device.submit();
        assertThat(drain())
                .containsExactlyInAnyOrderElementsOf(
                        LongStream.range(0, DEPTH).map(i -> 1L << i).boxed().toList());
        MemorySegment target = segment(DEPTH * SPAN);
        calls().read(target, 0);
        new BlockContent(5).requireEqual(target);
    }

    @Test
    void givenSinkThatQueues_whenPolled_thenTheNextOneFollows() {
        MemorySegment target = segment(SPAN);
        List<Long> tags = new ArrayList<>();
        CompletionSink chain = new CompletionSink() {
            @Override
            public void completed(long tag, IoOutcome outcome) {
                tags.add(tag);
                if (tag < 20) {
                    assertThat(device.read(target, 0, tag + 1)).isTrue();
                }
            }
        };
        device.read(target, 0, 0);
        awaitAll(chain);
        assertThat(tags)
                .containsExactlyElementsOf(LongStream.rangeClosed(0, 20).boxed().toList());
    }

    @Test
    void givenSinkThatThrows_whenPolledAgain_thenTheDeviceGoesOn() {
        MemorySegment target = segment(SPAN);
        device.read(target, 0, 7);
        assertThatIllegalStateException()
                .isThrownBy(() -> awaitAll((_, _) -> {
                    throw new IllegalStateException("sink");
                }));
        assertThat(device.inFlight()).isZero();
        device.read(target, 0, 8);
        assertThat(drain()).containsExactly(8L);
    }

    @Test
    void givenNothingOnItsWay_whenAwaited_thenReturnsAtOnce() {
        assertThat(device.await((_, _) -> {}, Long.MAX_VALUE)).isZero();
        assertThat(device.poll((_, _) -> {})).isZero();
    }

    @Test
    void givenInterruptedThread_whenAwaited_thenWaitsAllTheSameAndStaysInterrupted() {
        device.write(filled(SPAN, 6), 0, 1);
        Thread.currentThread().interrupt();
        assertThat(drain()).containsExactly(1L);
        assertThat(Thread.interrupted()).isTrue();
        requireContent(0, 6);
    }

    @Test
    void givenWrites_whenSynced_thenDone() {
        calls().write(filled(SPAN, 7), 0);
        assertThat(calls().sync()).isEqualTo(IoOutcome.DONE);
        requireContent(0, 7);
    }

    @Test
    void givenWrittenSpan_whenDiscarded_thenReadsAsZeroesUnlessUnsupported() {
        calls().write(filled(2 * SPAN, 8), 0);
        IoOutcome outcome = calls().discard(ALIGNMENT, ALIGNMENT);
        MemorySegment target = segment(ALIGNMENT);
        calls().read(target, ALIGNMENT);
        if (outcome.isDone()) {
            assertThat(target.mismatch(zeroes(ALIGNMENT))).isEqualTo(-1);
        } else {
            assertThat(outcome.kind()).isEqualTo(IoOutcome.Kind.UNSUPPORTED);
            new BlockContent(8).requireEqual(ALIGNMENT, target);
        }
        calls().read(target, 2 * ALIGNMENT);
        new BlockContent(8).requireEqual(2 * ALIGNMENT, target);
        calls().write(filled(SPAN, 9), 0);
        requireContent(0, 9);
    }

    @Test
    void givenClosedDevice_whenOpenedAgain_thenItHasItsBytes() throws Exception {
        calls().write(filled(SPAN, 10), SIZE - SPAN);
        device.close();
        device = open(SIZE, DEPTH);
        requireContent(SIZE - SPAN, 10);
    }

    @Test
    void givenWritesOnTheirWay_whenClosed_thenTheyArriveFirst() throws Exception {
        MemorySegment source = filled(DEPTH * SPAN, 11);
        for (int i = 0; i < DEPTH; i++) {
            device.write(source.asSlice((long) i * SPAN, SPAN), (long) i * SPAN, i);
        }
        device.close();
        source.fill((byte) 0);
        device = open(SIZE, DEPTH);
        MemorySegment target = segment(DEPTH * SPAN);
        calls().read(target, 0);
        new BlockContent(11).requireEqual(target);
    }

    @Test
    void givenDeviceThatNobodyUsed_whenAnotherThreadClosesIt_thenThatIsFine() throws Exception {
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        Thread closer = Thread.ofPlatform().start(device::close);
        closer.setUncaughtExceptionHandler((_, failure) -> thrown.set(failure));
        closer.join();
        assertThat(thrown).hasNullValue();
        device = open(SIZE, DEPTH);
    }

    @Test
    void givenHeapSource_whenWritten_thenTheDeviceStaysUsable() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> device.write(MemorySegment.ofArray(new byte[SPAN]), 0, 0))
                .withMessageContaining("native memory");
        assertThat(device.inFlight()).isZero();
        assertThat(calls().write(filled(SPAN, 12), 0)).isEqualTo(IoOutcome.DONE);
    }

    @Test
    void givenWorkHandedOverByOthers_whenTheyWakeTheOwner_thenAllOfItIsCarriedOutOnce() throws Exception {
        long each = 500;
        Queue<Long> handedOver = new ConcurrentLinkedQueue<>();
        List<Thread> others = IntStream.range(0, 3)
                .mapToObj(other -> Thread.ofPlatform().start(() -> {
                    for (long i = 0; i < each; i++) {
                        handedOver.add(other * each + i);
                        device.wake();
                    }
                }))
                .toList();
        MemorySegment target = segment(SPAN);
        List<Long> tags = new ArrayList<>();
        while (tags.size() < 3 * each) {
            while (device.inFlight() < DEPTH && !handedOver.isEmpty()) {
                assertThat(device.read(target, 0, handedOver.remove())).isTrue();
            }
            device.await((tag, _) -> tags.add(tag), Long.MAX_VALUE);
        }
        for (Thread other : others) {
            other.join();
        }
        assertThat(tags)
                .containsExactlyInAnyOrderElementsOf(
                        LongStream.range(0, 3 * each).boxed().toList());
    }

    @Test
    void givenAnotherThreadThatWakes_whenTheDeviceIsUsedAndClosed_thenItDoesNeitherOwnNorDisturbIt() throws Exception {
        AtomicBoolean over = new AtomicBoolean();
        AtomicReference<BlockDevice> current = new AtomicReference<>(device);
        Thread other = Thread.ofPlatform().start(() -> {
            while (!over.get()) {
                current.get().wake();
            }
        });
        for (int i = 0; i < 20; i++) {
            assertThat(calls().write(filled(SPAN, i), 0)).isEqualTo(IoOutcome.DONE);
            requireContent(0, i);
            device.close();
            device = open(SIZE, DEPTH);
            current.set(device);
        }
        over.set(true);
        other.join();
    }

    private BlockingDeviceIo calls() {
        return new BlockingDeviceIo(device);
    }

    private void requireContent(long offset, long seed) {
        MemorySegment target = segment(SPAN);
        assertThat(calls().read(target, offset)).isEqualTo(IoOutcome.DONE);
        new BlockContent(seed).requireEqual(target);
    }

    /// The tags that come back until nothing is on its way.
    private List<Long> drain() {
        List<Long> tags = new ArrayList<>();
        awaitAll((tag, outcome) -> {
            assertThat(outcome).isEqualTo(IoOutcome.DONE);
            tags.add(tag);
        });
        return tags;
    }

    private void awaitAll(CompletionSink sink) {
        for (int attempt = 0; device.inFlight() > 0; attempt++) {
            assertThat(attempt).as("awaits").isLessThan(MAX_AWAITS);
            device.await(sink, AWAIT_NANOS);
        }
    }

    private MemorySegment segment(int bytes) {
        return arena.allocate(bytes, ALIGNMENT);
    }

    private MemorySegment zeroes(int bytes) {
        return segment(bytes);
    }

    private MemorySegment filled(int bytes, long seed) {
        MemorySegment filled = segment(bytes);
        new BlockContent(seed).fill(filled);
        return filled;
    }
}
