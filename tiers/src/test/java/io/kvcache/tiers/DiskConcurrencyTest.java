package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.Hint;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Several threads at a store whose host memory holds an eighth of what they use and whose disk holds half: every
/// byte of every table is checked while blocks come, go, are dropped and reclaimed.
final class DiskConcurrencyTest {

    /// Blocks of 64 KiB.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(4, 8, 128, 4, Dtype.BF16));

    private static final int TOKENS = 4;
    private static final int THREADS = 4;
    /// The long run: `./mvnw test -pl kvcache-core,tiers -Dtest=DiskConcurrencyTest
    /// -Dkvcache.stress.steps=20000`.
    private static final int STEPS = Integer.getInteger("kvcache.stress.steps", 600);
    private static final int TRUNKS = 12;
    private static final int MAX_BLOCKS = 40;
    private static final long PATIENCE = TimeUnit.SECONDS.toNanos(60);

    @TempDir
    private Path folder;

    @Test
    @Tag("slow")
    void givenThreadsAtASmallStoreWithADisk_whenTheyWork_thenEveryByteIsRight() {
        try (TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(32 << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .admission(AdmissionKind.ALWAYS)
                .disk(folder.resolve("one"), 96 << 20)
                .disk(folder.resolve("two"), 64 << 20)
                .build()) {
            cache.register(SPACE);
            List<CompletableFuture<Integer>> threads = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                long seed = i;
                threads.add(CompletableFuture.supplyAsync(() -> work(cache, new Random(seed))));
            }
            int verified = threads.stream().mapToInt(CompletableFuture::join).sum();
            assertThat(verified).isGreaterThan(THREADS * STEPS);
            cache.validate();
            assertThat(flushed(cache)).isTrue();
            cache.validate();
            assertThat(cache.diskStats()).allSatisfy(disk -> {
                assertThat(disk.loaded()).isPositive();
                assertThat(disk.readFailures()).isZero();
            });
            assertThat(cache.stats().openTables()).isZero();
        }
    }

    /// A disk as full as these says no when it reclaims a block while one below it is on its way there; both are
    /// written when asked again.
    private static boolean flushed(TieredKvCache cache) {
        boolean durable = cache.flush(Duration.ofNanos(PATIENCE));
        for (int again = 0; again < 5 && !durable; again++) {
            durable = cache.flush(Duration.ofNanos(PATIENCE));
        }
        return durable;
    }

    private static int work(TieredKvCache cache, Random random) {
        int verified = 0;
        for (int step = 0; step < STEPS; step++) {
            BlockChain chain = chain(random);
            int dice = random.nextInt(100);
            if (dice < 2) {
                cache.drop(chain, random.nextInt(chain.length()));
            } else if (dice < 6) {
                cache.hint(new Hint.Expect(chain, Duration.ZERO));
            } else {
                verified += request(cache, chain, random);
            }
        }
        return verified;
    }

    /// As an engine does: what is there is read, the rest computed and put.
    private static int request(TieredKvCache cache, BlockChain chain, Random random) {
        try (BlockTable table = cache.acquire(chain, 0, Duration.ofNanos(random.nextInt(8) == 0 ? 0 : PATIENCE))) {
            int wanted = random.nextInt(6) == 0 ? 1 : chain.length();
            int ready = table.await(wanted, Duration.ofNanos(random.nextInt(6) == 0 ? 1000 : PATIENCE));
            for (int index = 0; index < ready; index++) {
                BlockContent content = BlockContent.of(chain.keyHi(index), chain.keyLo(index));
                assertThat(content.mismatch(table.segment(index)))
                        .as("block %s", index)
                        .isEqualTo(-1);
            }
            for (int index = ready; index < chain.length(); index++) {
                if (!put(cache, chain, index, random)) {
                    break;
                }
            }
            return ready;
        }
    }

    private static boolean put(TieredKvCache cache, BlockChain chain, int index, Random random) {
        try (BlockWriter writer =
                cache.put(chain, index, 0, Duration.ofNanos(random.nextBoolean() ? 0 : PATIENCE / 60))) {
            if (writer.outcome() == PutOutcome.RESERVED && random.nextInt(50) > 0) {
                BlockContent.of(chain.keyHi(index), chain.keyLo(index)).fill(writer.segment());
                writer.seal();
            }
            return writer.outcome().allowsNextBlock();
        }
    }

    private static BlockChain chain(Random random) {
        int trunk = (int) Math.abs(random.nextGaussian() * TRUNKS / 2);
        int branch = random.nextInt(3);
        int length = 1 + random.nextInt(MAX_BLOCKS);
        return BlockChain.of(
                SPACE,
                IntStream.range(0, length * TOKENS)
                        .map(i -> trunk * 100_000 + (i < MAX_BLOCKS * TOKENS / 2 ? i : branch * 1000 + i))
                        .toArray());
    }
}
