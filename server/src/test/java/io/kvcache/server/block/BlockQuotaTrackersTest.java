package io.kvcache.server.block;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.EngineKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.event.NamespaceIdResolver;
import io.kvcache.server.quota.Quota;
import io.kvcache.tiers.TieredKvCache;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Blocks of a page each over a real store, put as [BlockEndpoint] does.
final class BlockQuotaTrackersTest {

    private static final long PAGE = 4096;
    private static final int BYTES = 128;
    private static final int EVENTS_KEPT = 1 << 16;

    private final Namespace model = model("blue");
    private final Namespace unlimited = model("green");
    private final TieredKvCache cache = TieredKvCache.builder()
            .hostBytes(64L << 20)
            .prefaultInBackground(false)
            .failOnLeak(true)
            .closeWait(Duration.ZERO)
            .build();
    private final Quota quota = new Quota(8 * PAGE);
    private final NamespaceIdResolver names = new NamespaceIdResolver(cache);
    private final BlockQuotaTrackers stocks =
            new BlockQuotaTrackers(cache, Map.of("blue", quota, "green", new Quota(0)), names::resolve, _ -> true);

    BlockQuotaTrackersTest() {
        cache.register(model);
        cache.register(unlimited);
        stocks.onRegistered(model);
        stocks.onRegistered(unlimited);
    }

    private static Namespace model(String tenant) {
        return Namespace.of("m", BlockShape.kv(1, 1, 8, 4, Dtype.BF16)).toBuilder()
                .tenant(tenant)
                .build();
    }

    @AfterEach
    void close() {
        cache.validate();
        cache.close();
    }

    private static EngineKey key(int number) {
        return EngineKey.of(ByteBuffer.allocate(Integer.BYTES).putInt(number).array());
    }

    private BlockQuotaTracker stock() {
        return Objects.requireNonNull(stocks.forTenant("blue"));
    }

    /// Answers whether it is stored.
    private boolean put(int number, int parent) {
        EngineKey above = parent < 0 ? null : key(parent);
        try (BlockWriter writer = cache.put(model, key(number), above, KvCache.NO_WAIT)) {
            assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
            BlockQuotaTracker.@Nullable BlockReservation blockReservation =
                    stock().reserve(above == null ? null : above.toBlockKey(model), BYTES);
            if (blockReservation == null) {
                return false;
            }
            assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
            blockReservation.commit(cache.blocks(model), key(number).toBlockKey(model), BYTES);
            return true;
        }
    }

    private void chain(int from, int blocks) {
        for (int i = 0; i < blocks; i++) {
            assertThat(put(from + i, i == 0 ? -1 : from + i - 1))
                    .as("block %d", i)
                    .isTrue();
        }
    }

    private boolean here(int number) {
        return cache.blocks(model).contains(key(number).toBlockKey(model));
    }

    private void assertCounted(int blocks) {
        assertThat(stock().stats().blocks()).isEqualTo(blocks);
        assertThat(stock().stats().usedBytes()).isEqualTo(blocks * PAGE);
        assertThat(quota.usedBytes()).isEqualTo(blocks * PAGE);
    }

    @Test
    void givenAFullQuota_whenAnotherChainIsPut_thenTheOlderOneLosesItsTail() {
        chain(0, 8);
        chain(100, 3);
        for (int i = 0; i < 8; i++) {
            assertThat(here(i)).as("block %d", i).isEqualTo(i < 5);
        }
        assertThat(here(102)).isTrue();
        assertCounted(8);
        assertThat(stock().stats().evicted()).isEqualTo(3);
        stocks.tick();
        assertCounted(8);
    }

    /// Room that they took, if only for a moment, another block would have to give.
    @Test
    void givenBlocksThatWentBeforeTheirEventsWereHeard_whenTheyAreHeard_thenTheyDoNotComeIn() {
        chain(0, 8);
        chain(100, 3);
        long uses = quota.nextUse();
        stocks.tick();
        assertThat(quota.nextUse()).as("what comes in is used").isEqualTo(uses + 1);
        assertCounted(8);
    }

    @Test
    void givenTwoChains_whenTheOlderIsReadAndMoreIsPut_thenTheOtherLosesItsTail() {
        chain(0, 4);
        chain(100, 4);
        for (int i = 0; i < 4; i++) {
            stock().recordUse(key(i).toBlockKey(model));
        }
        chain(200, 2);
        assertThat(here(3)).isTrue();
        assertThat(here(101)).isTrue();
        assertThat(here(102)).isFalse();
        assertThat(here(103)).isFalse();
    }

    @Test
    void givenAChainAsLongAsTheQuota_whenItGrows_thenItIsRefusedAndNothingGoes() {
        chain(0, 8);
        assertThat(put(8, 7)).isFalse();
        assertThat(here(7)).isTrue();
        assertThat(stock().stats().refused()).isEqualTo(1);
        assertCounted(8);
    }

    @Test
    void givenABlockThatIsBeingPut_whenOthersWantRoom_thenTheOneBeforeItStays() {
        chain(0, 1);
        chain(100, 6);
        try (BlockQuotaTracker.BlockReservation blockReservation =
                Objects.requireNonNull(stock().reserve(key(0).toBlockKey(model), PAGE))) {
            assertThat(blockReservation).isNotNull();
            chain(200, 3);
            assertThat(here(0)).as("oldest of all, and held").isTrue();
            assertThat(here(105)).isFalse();
        }
        chain(300, 2);
        assertThat(here(0)).as("held no longer").isFalse();
        assertCounted(8);
    }

    @Test
    void givenBlocksThatAreDropped_whenTheEventsAreHeard_thenTheyCountNoMore() {
        chain(0, 8);
        assertThat(cache.blocks(model).drop(key(4).toBlockKey(model))).isEqualTo(4);
        stocks.tick();
        assertCounted(4);
        cache.drop(model);
        stocks.tick();
        assertCounted(0);
        chain(0, 8);
        assertCounted(8);
    }

    @Test
    void givenBlocksThatNobodyClaimedRoomFor_whenTheEventsAreHeard_thenTheyCount() {
        try (BlockWriter writer = cache.put(model, key(7), null, KvCache.NO_WAIT)) {
            writer.seal();
        }
        try (BlockWriter writer = cache.put(unlimited, key(7), null, KvCache.NO_WAIT)) {
            writer.seal();
        }
        stocks.tick();
        assertCounted(1);
        assertThat(stocks.stats()).containsOnlyKeys("blue");
    }

    @Test
    @Tag("slow")
    void givenEventsThatAreLost_whenMoreAreHeard_thenWhatIsThereIsLookedFor() {
        chain(0, 8);
        stocks.tick();
        cache.blocks(model).drop(key(6).toBlockKey(model));
        Namespace things = Namespace.objects("things", "green");
        cache.register(things);
        byte[] name = {1};
        for (int i = 0; i < EVENTS_KEPT; i++) {
            try (var writer = cache.putObject(things, name, 1, KvCache.NO_WAIT)) {
                writer.seal();
            }
        }
        stocks.tick();
        assertCounted(6);
    }

    @Test
    void givenBlocksFromBeforeTheStart_whenTheirNamespaceIsUsed_thenTheyCountAndGoFirst() {
        chain(0, 8);
        Quota later = new Quota(6 * PAGE);
        BlockQuotaTrackers restarted = new BlockQuotaTrackers(cache, Map.of("blue", later), names::resolve, _ -> true);
        restarted.onRegistered(model);
        restarted.onRecovered();
        assertThat(later.usedBytes()).isEqualTo(8 * PAGE);
        BlockQuotaTracker stock = Objects.requireNonNull(restarted.forTenant("blue"));
        try (BlockQuotaTracker.BlockReservation blockReservation = Objects.requireNonNull(stock.reserve(null, PAGE))) {
            assertThat(blockReservation).isNotNull();
            assertThat(here(4)).isTrue();
            assertThat(here(5)).isFalse();
            assertThat(later.usedBytes()).isEqualTo(6 * PAGE);
        }
    }
}
