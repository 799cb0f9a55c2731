package io.kvcache.transport.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.transport.client.RemoteKvCache;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.IntStream;

/// What one client asks for, as a seed decides, and what each answer must be like.
final class NetworkTraffic {

    private static final int CHAINS = 6;
    private static final int BLOCKS = 8;
    private static final int BLOCK_BYTES = 1 << 16;

    /// No operation may take longer, whatever happens: some are dozens of request time-outs, and the machine may
    /// be busy.
    private static final long MAX_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final RemoteKvCache cache;
    private final SplittableRandom random;
    private final int operations;
    private final RunJournal journal;
    private final LongAdder found = new LongAdder();

    NetworkTraffic(RemoteKvCache cache, SplittableRandom random, int operations, RunJournal journal) {
        this.cache = cache;
        this.random = random;
        this.operations = operations;
        this.journal = journal;
    }

    long found() {
        return found.sum();
    }

    void run() {
        for (int i = 0; i < operations; i++) {
            long start = System.nanoTime();
            try {
                operation();
            } catch (UncheckedIOException unanswered) {
                journal.note("no answer: " + unanswered.getMessage()); // what has none without the server says so
            }
            journal.note("operation " + i + " has ended");
            assertThat(System.nanoTime() - start).as("time of a call").isLessThan(MAX_NANOS);
        }
    }

    private void operation() {
        int chain = random.nextInt(CHAINS);
        int blocks = 1 + random.nextInt(BLOCKS);
        int kind = random.nextInt(12);
        journal.note("operation of kind %d, chain %d, %d blocks".formatted(kind, chain, blocks));
        switch (kind) {
            case 0, 1 -> written(chain, blocks);
            case 2, 3 -> stored(chain, blocks);
            case 4, 5, 6 -> found.add(resident(chain, blocks));
            case 7, 8 -> found.add(arriving(chain, blocks));
            case 9 -> assertThat(cache.match(chain(chain, blocks)).blocks()).isLessThanOrEqualTo(blocks);
            case 10 -> object(random.nextInt(4));
            default -> cache.drop(chain(chain, blocks), random.nextInt(blocks));
        }
    }

    private static BlockChain chain(int seed, int blocks) {
        return BlockChain.of(
                NetworkSimulation.SPACE,
                IntStream.range(0, 16 * blocks).map(i -> seed * 100_000 + i).toArray());
    }

    /// One writer after the other; some are given up.
    private void written(int seed, int blocks) {
        BlockChain chain = chain(seed, blocks);
        for (int index = 0; index < blocks; index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, Duration.ofNanos(random.nextInt(3) * 1_000_000L))) {
                if (writer.outcome() == PutOutcome.RESERVED && random.nextInt(10) > 0) {
                    BlockContent.of(chain.key(index)).fill(writer.segment());
                    writer.seal();
                } else if (!writer.outcome().allowsNextBlock()) {
                    return;
                }
            }
        }
    }

    /// All at once; answers how many are there or will be.
    int stored(int seed, int blocks) {
        BlockChain chain = chain(seed, blocks);
        List<MemorySegment> bytes = new ArrayList<>();
        for (int index = 0; index < blocks; index++) {
            bytes.add(BlockContent.of(chain.key(index)).toHeapSegment(BLOCK_BYTES));
        }
        return cache.putAll(chain, 0, bytes, KvCache.NO_WAIT).accepted();
    }

    /// What is here at once.
    int resident(int seed, int blocks) {
        BlockChain chain = chain(seed, blocks);
        try (BlockTable table = cache.acquire(chain)) {
            return verified(table, chain);
        }
    }

    /// What is here after a while, looked at as it comes.
    private int arriving(int seed, int blocks) {
        BlockChain chain = chain(seed, blocks);
        int from = random.nextInt(blocks);
        Duration timeout = Duration.ofMillis(1 + random.nextInt(200));
        try (BlockTable table = cache.acquire(chain, from, timeout)) {
            int first = verified(table, chain);
            table.await(blocks, timeout);
            int ready = verified(table, chain);
            assertThat(ready).as("never shrinks").isBetween(first, blocks - from);
            return ready;
        }
    }

    private static int verified(BlockTable table, BlockChain chain) {
        int ready = table.readyBlocks();
        for (int index = table.firstBlock(); index < table.firstBlock() + ready; index++) {
            BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
        }
        return ready;
    }

    private void object(int number) {
        byte[] key = {1, (byte) number};
        int bytes = 1 + number * 50_000;
        BlockContent content = BlockContent.of(number, 5);
        if (random.nextBoolean()) {
            cache.storeObject(NetworkSimulation.THINGS, key, content.toHeapSegment(bytes), KvCache.NO_WAIT);
            return;
        }
        try (ObjectView view = cache.getObject(NetworkSimulation.THINGS, key)) {
            if (view != null) {
                byte[] all = new byte[bytes];
                assertThat(view.bytes()).isEqualTo(bytes);
                view.copyTo(0, bytes, MemorySegment.ofArray(all));
                content.requireEqual(MemorySegment.ofArray(Arrays.copyOf(all, bytes)));
            }
        }
    }
}
