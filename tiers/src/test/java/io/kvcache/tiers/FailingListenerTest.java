package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.AccessListener;
import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/// A store whose listener throws at everything it hears.
final class FailingListenerTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 16, 16, Dtype.BF16));
    private static final Namespace THINGS = Namespace.objects("things", "t");
    private static final byte[] KEY = {1, 2, 3};

    private record Failing() implements AccessListener {
        @Override
        public void onAccess(BlockChain chain, int from, int found, int blockBytes) {
            throw new IllegalStateException("a listener's own bug");
        }

        @Override
        public void onAccess(LookupKind lookupKind, Namespace namespace, BlockKey key, long bytes) {
            throw new IllegalStateException("a listener's own bug");
        }

        @Override
        public void onPut(Namespace namespace, BlockKey key, @Nullable BlockKey after, long bytes, boolean replaces) {
            throw new IllegalStateException("a listener's own bug");
        }
    }

    @Test
    void givenAListenerThatThrows_whenTheStoreIsUsed_thenAllIsServedAndNothingStaysPinned() {
        try (TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(64L << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .build()) {
            cache.register(SPACE);
            cache.register(THINGS);
            cache.addAccessListener(new Failing());
            BlockChain chain = BlockChain.of(SPACE, IntStream.range(0, 4 * 16).toArray());
            MemorySegment block = MemorySegment.ofArray(new byte[1024]);
            assertThat(cache.putAll(chain, 0, List.of(block, block, block, block), KvCache.NO_WAIT)
                            .stored())
                    .isEqualTo(4);
            assertThat(cache.storeObject(THINGS, KEY, block, KvCache.NO_WAIT)).isTrue();
            BlockChain named = BlockChain.ofEngineKeys(SPACE, List.of(new byte[] {9, 9, 9, 9, 9, 9, 9, 9}));
            try (BlockWriter writer = cache.put(named, 0, 0, KvCache.NO_WAIT)) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
            }

            try (BlockTable table = cache.acquire(chain)) {
                assertThat(table.readyBlocks()).isEqualTo(4);
            }
            try (BlockTable table = cache.acquire(named, 0, KvCache.NO_WAIT)) {
                assertThat(table.readyBlocks()).isEqualTo(1);
            }
            try (ObjectView view = cache.getObject(THINGS, KEY)) {
                assertThat(view).isNotNull();
            }
            assertThat(cache.containsObject(THINGS, KEY)).isTrue();

            assertThat(cache.stats().openTables()).isZero();
            assertThat(cache.drop(SPACE)).isEqualTo(5);
            cache.validate();
        }
    }
}
