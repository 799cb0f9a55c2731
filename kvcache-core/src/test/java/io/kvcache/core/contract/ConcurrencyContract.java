package io.kvcache.core.contract;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.CacheStats;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntConsumer;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Many threads on one cache: every byte that any of them gets is right, and nothing is left behind.
public abstract class ConcurrencyContract extends KvCacheContract {

    private static final int THREADS = 4;
    private static final int OPERATIONS = Repetitions.usualOrFull(150, 1500);

    protected ConcurrencyContract(CacheUnderTest.Factory factory) {
        super(factory);
    }

    /// Runs `work` in each of some threads, told its number.
    private static void inThreads(IntConsumer work) throws Exception {
        try (ExecutorService threads = Executors.newFixedThreadPool(THREADS)) {
            List<Future<?>> running = new ArrayList<>();
            for (int thread = 0; thread < THREADS; thread++) {
                int number = thread;
                running.add(threads.submit(() -> work.accept(number)));
            }
            for (Future<?> each : running) {
                each.get();
            }
        }
    }

    @Test
    @Tag(ESSENTIAL)
    void givenManyThreads_whenTheyPutGetAndDrop_thenEveryByteIsRight() throws Exception {
        AtomicInteger read = new AtomicInteger();
        inThreads(thread -> {
            SplittableRandom random = new SplittableRandom(70 + thread);
            for (int i = 0; i < OPERATIONS; i++) {
                boolean large = random.nextInt(4) == 0;
                BlockChain chain = large ? chain(MIB, random.nextInt(12), 8) : chain(SMALL, random.nextInt(80), 20);
                int dice = random.nextInt(100);
                if (dice < 55) {
                    read.addAndGet(verified(chain));
                } else if (dice < 97) {
                    extend(chain, random);
                } else {
                    cache().drop(chain, random.nextInt(chain.length()));
                }
            }
        });
        subject().settle();
        subject().validate();
        assertThat(read.get()).as("blocks read, seeds from 70").isPositive();
        cache().drop(MIB);
        cache().drop(SMALL);
        requireEmpty();
    }

    /// Puts some blocks after those that are here; a thread that abandons one takes with it what others put
    /// below.
    private void extend(BlockChain chain, SplittableRandom random) {
        int from = match(chain);
        int to = Math.min(chain.length(), from + 1 + random.nextInt(4));
        PutOutcome last = PutOutcome.PRESENT;
        for (int index = from; index < to && last.allowsNextBlock(); index++) {
            try (BlockWriter writer = reserve(chain, index)) {
                last = writer.outcome();
                if (last == PutOutcome.RESERVED) {
                    content(chain, index).fill(writer.segment());
                    if (random.nextInt(10) > 0) {
                        writer.seal();
                    }
                }
            }
        }
    }

    /// A block that was coming from a slower tier when it was dropped keeps its slot until it has come.
    private void requireEmpty() {
        long start = System.nanoTime();
        CacheStats stats = settled();
        while (stats.records().live() > 0
                && System.nanoTime() - start < subject().patience().toNanos()) {
            Pause.briefly();
            stats = settled();
        }
        assertThat(stats.records().live()).isZero();
        assertThat(stats.host().heldBytes()).isZero();
        assertThat(stats.host().unusedSlabs()).isEqualTo(stats.host().slabs());
    }

    private CacheStats settled() {
        subject().settle();
        return cache().stats();
    }

    @RepeatedTest(5)
    @Tag(ESSENTIAL)
    void givenOneChain_whenAllThreadsPutIt_thenEachBlockIsWrittenOnce() throws Exception {
        BlockChain chain = chain(SMALL, 1, 60);
        AtomicInteger written = new AtomicInteger();
        inThreads(thread -> {
            for (int index = 0; index < chain.length(); index++) {
                try (BlockWriter writer = reserve(chain, index)) {
                    assertThat(writer.outcome().allowsNextBlock())
                            .as("thread %d, block %d", thread, index)
                            .isTrue();
                    if (writer.outcome() == PutOutcome.RESERVED) {
                        content(chain, index).fill(writer.segment());
                        assertThat(writer.seal()).isNotEqualTo(SealOutcome.DROPPED);
                        written.incrementAndGet();
                    }
                }
            }
        });
        assertThat(written.get()).isEqualTo(60);
        assertThat(verified(chain)).isEqualTo(60);
        assertThat(cache().stats().puts().reserved()).isEqualTo(60);
    }

    /// The version of an object is its size, so that a reader knows which one it has and can check all of it.
    @Test
    @Tag(ESSENTIAL)
    void givenAnObjectWrittenOverAgainAndAgain_whenRead_thenAlwaysOneWholeVersion() throws Exception {
        byte[] key = {1};
        putObject(key, content(OBJECTS, key).withVersion(1), 1);
        inThreads(thread -> {
            SplittableRandom random = new SplittableRandom(90 + thread);
            for (int i = 0; i < OPERATIONS; i++) {
                if (thread % 2 == 0) {
                    overwrite(key, 1 + random.nextInt(200_000));
                } else {
                    try (ObjectView view = view(key)) {
                        requireContent(view, content(OBJECTS, key).withVersion(view.bytes()), view.bytes());
                    }
                }
            }
        });
        subject().settle();
        assertThat(cache().stats().records().live()).isEqualTo(1);
        assertThat(cache().dropObject(OBJECTS, key)).isTrue();
        subject().settle();
        requireEmpty();
    }

    private void overwrite(byte[] key, int bytes) {
        try (ObjectWriter writer = cache().putObject(OBJECTS, key, bytes, KvCache.NO_WAIT)) {
            if (writer.outcome() == PutOutcome.RESERVED) {
                writer.copyFrom(content(OBJECTS, key).withVersion(bytes).toHeapSegment(bytes));
                assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
            }
        }
    }

    @Test
    void givenAStoreHalfPinned_whenThreadsWaitForRoom_thenAllGetIt() throws Exception {
        BlockChain pinned = stored(chain(1, 32));
        try (BlockTable table = cache().acquire(pinned)) {
            inThreads(thread -> {
                for (int i = 0; i < 100; i++) {
                    BlockChain chain = chain(100 + thread * 100 + i, 1);
                    Duration patience = Duration.ofNanos(subject().patience().toNanos());
                    try (BlockWriter writer = cache().put(chain, 0, 0, patience)) {
                        assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                        content(chain, 0).fill(writer.segment());
                        writer.seal();
                    }
                }
            });
            requireContent(table, pinned);
        }
    }
}
