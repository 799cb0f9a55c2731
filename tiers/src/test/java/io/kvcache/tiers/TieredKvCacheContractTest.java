package io.kvcache.tiers;

import io.kvcache.core.contract.ArgumentContract;
import io.kvcache.core.contract.BlockContract;
import io.kvcache.core.contract.BlockWriterContract;
import io.kvcache.core.contract.CacheSetup;
import io.kvcache.core.contract.CacheUnderTest;
import io.kvcache.core.contract.CapacityContract;
import io.kvcache.core.contract.ConcurrencyContract;
import io.kvcache.core.contract.EventContract;
import io.kvcache.core.contract.HintContract;
import io.kvcache.core.contract.HybridContract;
import io.kvcache.core.contract.LifecycleContract;
import io.kvcache.core.contract.LocalObjectContract;
import io.kvcache.core.contract.ManualClock;
import io.kvcache.core.contract.ObjectContract;
import io.kvcache.core.contract.Pause;
import java.time.Duration;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Nested;

/// The embedded cache keeps the contract of every `KvCache`.
final class TieredKvCacheContractTest {

    private static CacheUnderTest open(CacheSetup setup) {
        return open(setup, UnaryOperator.identity());
    }

    /// Opens a cache with something beside what the contract asks for.
    static CacheUnderTest open(CacheSetup setup, UnaryOperator<TieredKvCacheBuilder> more) {
        ManualClock time = new ManualClock();
        TieredKvCacheBuilder builder = TieredKvCache.builder()
                .hostBytes(setup.hostBytes())
                .eventCapacity(setup.eventCapacity())
                .failOnLeak(setup.strict())
                .checkSegments(true)
                .trackOpenHandles(true)
                .prefaultInBackground(false)
                .closeWait(Duration.ofMillis(1));
        TieredKvCacheBuilder timed = setup.manualTime() ? builder.clock(time) : builder;
        return new Subject(more.apply(timed).build(), setup, time);
    }

    private record Subject(TieredKvCache cache, CacheSetup setup, ManualClock time) implements CacheUnderTest {

        @Override
        public void validate() {
            cache.validate();
        }

        /// A block that is being written to disk is pinned for as long.
        @Override
        public void settle() {
            while (open() && cache.offloadStats().writing() > 0) {
                Pause.briefly();
            }
        }

        @Override
        public boolean advance(Duration by) {
            time.sleep(by.toNanos());
            return setup.manualTime();
        }

        @Override
        public boolean checked() {
            return true;
        }

        @Override
        public void close() {
            if (open()) {
                cache.close();
            }
        }

        private boolean open() {
            try {
                cache.stats();
                return true;
            } catch (IllegalStateException closed) {
                return false;
            }
        }
    }

    @Nested
    final class Blocks extends BlockContract {
        Blocks() {
            super(TieredKvCacheContractTest::open);
        }
    }

    @Nested
    final class BlockWriters extends BlockWriterContract {
        BlockWriters() {
            super(TieredKvCacheContractTest::open);
        }
    }

    @Nested
    final class Hybrids extends HybridContract {
        Hybrids() {
            super(TieredKvCacheContractTest::open);
        }
    }

    @Nested
    final class LocalObjects extends LocalObjectContract {
        LocalObjects() {
            super(TieredKvCacheContractTest::open);
        }
    }

    @Nested
    final class Objects extends ObjectContract {
        Objects() {
            super(TieredKvCacheContractTest::open);
        }
    }

    @Nested
    final class Refusals extends ArgumentContract {
        Refusals() {
            super(TieredKvCacheContractTest::open);
        }
    }

    @Nested
    final class Capacity extends CapacityContract {
        Capacity() {
            super(TieredKvCacheContractTest::open);
        }
    }

    @Nested
    final class Hints extends HintContract {
        Hints() {
            super(TieredKvCacheContractTest::open);
        }
    }

    @Nested
    final class Events extends EventContract {
        Events() {
            super(TieredKvCacheContractTest::open);
        }
    }

    @Nested
    final class Lifecycle extends LifecycleContract {
        Lifecycle() {
            super(TieredKvCacheContractTest::open);
        }
    }

    @Nested
    final class Concurrency extends ConcurrencyContract {
        Concurrency() {
            super(TieredKvCacheContractTest::open);
        }
    }
}
