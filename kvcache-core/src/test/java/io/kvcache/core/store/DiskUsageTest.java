package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.DiskLru;
import io.kvcache.core.policy.FlatRecords;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.tree.RecordLayout;
import io.kvcache.core.tree.RecordPool;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// Evictions from a ranked disk that two groups share.
final class DiskUsageTest {

    private static final int RECORDS = 64;
    private static final long PAGE = 4096;
    private static final int GREEN = 1;
    private static final int BLUE = 2;

    /// Blocks without parents.
    private record Blocks() implements FlatRecords {
        @Override
        public int capacity() {
            return RECORDS;
        }

        @Override
        public long bytes(int record) {
            return PAGE;
        }

        @Override
        public long fingerprint(int record) {
            return record;
        }
    }

    private final PolicyState state = new PolicyState(RECORDS);
    private final DiskUsage account = account();

    private DiskUsage account() {
        RecordPool pool = new RecordPool(Arena.ofAuto().allocate(RecordLayout.spanBytes(RECORDS), 64), RECORDS);
        MemoryShares shares =
                new MemoryShares(pool, new SlabPool(ArenaMemory.source().reserve("slots", SlabPool.MIN_BYTES)));
        shares.setWeight(GREEN, 1);
        shares.setWeight(BLUE, 1);
        return new DiskUsage(shares, order(), this::order, 100 * PAGE, true);
    }

    private DiskLru order() {
        return new DiskLru(new Blocks(), state);
    }

    private void enter(int group, int from, int to) {
        for (int record = from; record < to; record++) {
            account.add(group, PAGE);
            account.order(group).admit(record);
        }
    }

    /// Evicts a record, with records from 4 on ranked high.
    private int evict() {
        return account.evictUnlessExempt(_ -> true, record -> record < 4 ? 1 : 100);
    }

    @Test
    void givenWhoHasMost_whenAllThatHeHasIsWanted_thenItGoesAndNothingOfOthers() {
        enter(BLUE, 40, 42);
        enter(GREEN, 0, 12);
        List<Integer> gone = new ArrayList<>();
        for (int i = 0; i < 9; i++) {
            gone.add(evict());
            account.remove(GREEN, PAGE);
        }
        assertThat(gone.subList(0, 4)).containsExactly(0, 1, 2, 3);
        assertThat(gone.subList(4, 9)).allMatch(record -> record >= 4 && record < 12);
        assertThat(IntStream.of(40, 41).allMatch(account.order(BLUE)::contains)).isTrue();
    }

    @Test
    void givenWhatIsWantedMore_whenItWasUsedLeastRecently_thenOthersGoFirst() {
        enter(GREEN, 0, 2);
        enter(GREEN, 4, 8);
        enter(GREEN, 2, 4);
        assertThat(IntStream.range(0, 4).map(_ -> evict())).containsExactly(0, 1, 2, 3);
    }
}
