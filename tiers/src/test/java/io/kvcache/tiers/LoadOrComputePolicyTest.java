package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import java.nio.file.Path;
import java.time.Duration;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// Blocks on a disk, and an engine that computes faster than it, or slower.
@Timeout(120)
@Tag("slow")
final class LoadOrComputePolicyTest {

    /// 16 tokens of 64 KiB: blocks of 1 MiB.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(16, 8, 128, 16, Dtype.BF16));

    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final long MIB = 1L << 20;
    private static final int CHAINS = 12;
    private static final int LENGTH = 16;

    /// No disk is as fast, and none as slow.
    private static final PrefillCost AT_ONCE = PrefillCost.ofTokenRate(1e15);

    private static final PrefillCost NEVER = PrefillCost.ofTokenRate(1e-6);

    @TempDir
    private Path folder;

    /// A store whose disk has all chains and whose memory has the last ones, and which has read some.
    private TieredKvCache filled(PrefillCost prefill) {
        TieredKvCache cache = builder(AdmissionKind.ALWAYS).prefill(prefill).build();
        cache.register(SPACE);
        for (int seed = 0; seed < CHAINS; seed++) {
            put(cache, seed);
            assertThat(cache.flush(PATIENCE)).isTrue();
        }
        for (int seed = 0; seed < CHAINS / 2; seed++) {
            ready(cache, seed);
        }
        return cache;
    }

    private TieredKvCacheBuilder builder(AdmissionKind admission) {
        return TieredKvCache.builder()
                .hostBytes(64 * MIB)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .admission(admission)
                .disk(folder.resolve("disk"), 600 * MIB);
    }

    private static void put(TieredKvCache cache, int seed) {
        put(cache, seed, LENGTH);
    }

    private static void put(TieredKvCache cache, int seed, int blocks) {
        for (int index = 0; index < blocks; index++) {
            try (BlockWriter writer = cache.put(chain(seed), index, 0, PATIENCE)) {
                writer.segment().fill((byte) seed);
                writer.seal();
            }
        }
    }

    private static BlockChain chain(int seed) {
        return BlockChain.of(
                SPACE,
                IntStream.range(0, LENGTH * 16).map(i -> i + seed * 1_000_000).toArray());
    }

    private static int ready(TieredKvCache cache, int seed) {
        try (BlockTable table = cache.acquire(chain(seed), 0, PATIENCE)) {
            return table.await(LENGTH, PATIENCE);
        }
    }

    /// A chain of which some is on disk alone.
    private static int onDisk(TieredKvCache cache) {
        return IntStream.range(0, CHAINS)
                .filter(seed -> cache.match(chain(seed)).diskBlocks() > 4)
                .findFirst()
                .orElseThrow();
    }

    @Test
    @Tag("slow")
    void givenAnEngineThatIsFasterThanTheDisk_whenAcquired_thenWhatIsThereIsLeftAndSaidSo() {
        try (TieredKvCache cache = filled(AT_ONCE)) {
            int seed = onDisk(cache);
            Match match = cache.match(chain(seed));
            long before = cache.blocksLeftOnDisk();
            assertThat(cache.match(chain(seed), PATIENCE)).isEqualTo(new Match(0, match.hostBlocks(), 0));
            assertThat(cache.blocksLeftOnDisk()).as("asking leaves nothing").isEqualTo(before);
            try (BlockTable table = cache.acquire(chain(seed), 0, PATIENCE)) {
                assertThat(table.await(LENGTH, PATIENCE)).isEqualTo(match.hostBlocks());
                assertThat(table.endBlock()).isEqualTo(match.hostBlocks());
                assertThat(table.blocksToRecompute()).isEqualTo(match.diskBlocks());
            }
            assertThat(cache.blocksLeftOnDisk() - before).isEqualTo(match.diskBlocks());
        }
    }

    @Test
    void givenThatAllIsLeft_whenAskedOftenEnough_thenItIsLoadedOnceToLearn() {
        try (TieredKvCache cache = filled(AT_ONCE)) {
            int seed = onDisk(cache);
            int most = 0;
            for (int i = 0; i < 64 && most < LENGTH; i++) {
                most = Math.max(most, ready(cache, seed));
            }
            assertThat(most).isEqualTo(LENGTH);
        }
    }

    @Test
    void givenAnEngineThatIsSlowerThanTheDisk_whenAcquired_thenAllComes() {
        try (TieredKvCache cache = filled(NEVER)) {
            for (int seed = 0; seed < CHAINS; seed++) {
                assertThat(ready(cache, seed)).isEqualTo(LENGTH);
            }
            assertThat(cache.blocksLeftOnDisk()).isZero();
            int seed = onDisk(cache);
            assertThat(cache.match(chain(seed), PATIENCE)).isEqualTo(cache.match(chain(seed)));
            assertThat(cache.match(chain(seed), Duration.ofNanos(1)).diskBlocks())
                    .as("nothing comes so soon")
                    .isZero();
        }
    }

    @Test
    void givenAStoreThatWasToldNothing_whenMatchedForNoTime_thenWhatIsResident() {
        try (TieredKvCache cache = builder(AdmissionKind.ALWAYS).build()) {
            cache.register(SPACE);
            for (int seed = 0; seed < CHAINS; seed++) {
                put(cache, seed);
                assertThat(cache.flush(PATIENCE)).isTrue();
            }
            int seed = onDisk(cache);
            assertThat(cache.match(chain(seed), PATIENCE).diskBlocks()).isPositive();
            assertThat(cache.match(chain(seed), KvCache.NO_WAIT).diskBlocks()).isZero();
        }
    }

    @Test
    void givenAChainOnDiskAndOneThatIsNot_whenImportanceNeedsRoom_thenMemoryKeepsWhatWouldBeLost() {
        try (TieredKvCache cache =
                builder(AdmissionKind.SECOND_HIT).policy(PolicyKind.IMPORTANCE).build()) {
            cache.register(SPACE);
            put(cache, 0);
            assertThat(cache.flush(PATIENCE)).isTrue();
            put(cache, 1);
            assertThat(ready(cache, 0)).as("used last").isEqualTo(LENGTH);
            put(cache, 2);
            put(cache, 3);
            put(cache, 4, LENGTH / 2);
            assertThat(cache.match(chain(1)).hostBlocks()).isEqualTo(LENGTH);
            Match copied = cache.match(chain(0));
            assertThat(copied.hostBlocks()).isLessThan(LENGTH);
            assertThat(copied.blocks()).isEqualTo(LENGTH);
            cache.validate();
        }
    }

    @Test
    void givenADeadlineThatNoDiskKeeps_whenAcquired_thenNothingIsBegun() {
        try (TieredKvCache cache = filled(NEVER)) {
            int seed = onDisk(cache);
            Match match = cache.match(chain(seed));
            try (BlockTable table = cache.acquire(chain(seed), 0, Duration.ofNanos(1))) {
                assertThat(table.endBlock()).isEqualTo(match.hostBlocks());
                assertThat(table.blocksToRecompute()).isEqualTo(match.diskBlocks());
            }
        }
    }
}
