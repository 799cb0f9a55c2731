package io.kvcache.tiers.front;

import io.kvcache.core.contract.DurableTierContract;
import io.kvcache.core.contract.DurableTierUnderTest;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.tiers.disk.InMemoryDiskTier;
import io.kvcache.tiers.front.CachedDiskTier.RetiredTiers;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Nested;

/// A disk with something in front of it keeps the contract of every tier that keeps its blocks.
final class CachedDiskTierContractTest {

    @Nested
    final class BehindMemory extends DurableTierContract {
        BehindMemory() {
            super(() -> new Both(false));
        }
    }

    @Nested
    final class BehindWhatFails extends DurableTierContract {
        BehindWhatFails() {
            super(() -> new Both(true));
        }
    }

    /// The front is as good as a disk in memory, and blank at each opening.
    private static final class Both implements DurableTierUnderTest {

        private final boolean failing;
        private final InMemoryDiskTier disk = new InMemoryDiskTier();
        private final List<InMemoryDiskTier> fronts = new ArrayList<>();

        Both(boolean failing) {
            this.failing = failing;
        }

        @Override
        public Tier open(TierListener listener) {
            return new CachedDiskTier("in front", disk::open, this::front, listener, new RetiredTiers());
        }

        private Tier front(TierListener listener) {
            if (failing) {
                ScriptedTier front = new ScriptedTier(listener);
                front.corrupt = true;
                front.held = false;
                return front;
            }
            fronts.add(new InMemoryDiskTier());
            return fronts.getLast().open(listener);
        }

        @Override
        public int damage(byte[] found) {
            return disk.damage(found);
        }

        @Override
        public void estrange() {
            disk.estrange();
        }

        @Override
        public long checksum() {
            return disk.checksum();
        }

        @Override
        public long waitNanos() {
            return 0;
        }

        @Override
        public void close() {
            fronts.forEach(InMemoryDiskTier::close);
            disk.close();
        }
    }
}
