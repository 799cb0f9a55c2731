package io.kvcache.gpu.tier;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.tier.DeviceStaging.StagedBlock;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Room for blocks that engines store.
final class DeviceStagingTest {

    private static final long BASE = 1L << 40;
    private static final int PAGE = 4096;
    private static final int SUM = 7;

    private final DeviceStaging staging =
            new DeviceStaging(new DeviceSpan(new DeviceAddress(BASE), 16 * PAGE), 8 * PAGE);

    private static BlockKey key(int number) {
        return new BlockKey(number, number);
    }

    private static TierBlock block(int number, int bytes, int checksum) {
        return new TierBlock(number, number, 0, 0, 0, false, 0, bytes, checksum, 0);
    }

    private StagedBlock taken(int bytes) {
        return Objects.requireNonNull(staging.take(bytes));
    }

    private @Nullable StagedBlock claim(int number, int bytes) {
        return staging.claim(block(number, bytes, SUM));
    }

    @Test
    void givenASealedBlock_whenClaimed_thenOnceAndOnlyWithItsChecksumAndSize() {
        taken(100).seal(key(1), SUM);
        assertThat(staging.claim(block(1, 100, SUM + 1))).as("other bytes").isNull();
        assertThat(claim(1, 101)).as("another size").isNull();
        assertThat(claim(2, 100)).as("another key").isNull();
        StagedBlock claimed = Objects.requireNonNull(claim(1, 100));
        assertThat(claimed.span()).isEqualTo(new DeviceSpan(new DeviceAddress(BASE), 100));
        assertThat(claim(1, 100)).as("while it is copied").isNull();
        claimed.returnClaim();
        assertThat(claim(1, 100)).isSameAs(claimed);
        claimed.close();
        assertThat(claim(1, 100)).as("after it was copied").isNull();
    }

    @Test
    void givenHeldRoom_whenAllIsTaken_thenThereIsNoneUntilTheOldestIsGivenBack() {
        StagedBlock first = taken(5 * PAGE);
        StagedBlock second = taken(3 * PAGE);
        assertThat(staging.take(1)).isNull();
        second.seal(key(2), SUM);
        assertThat(staging.take(1)).as("behind the oldest").isNull();
        first.close();
        assertThat(taken(5 * PAGE).span()).isEqualTo(first.span());
        assertThat(claim(2, 3 * PAGE)).as("not overwritten").isSameAs(second);
    }

    @Test
    void givenABlockThatWasNotClaimed_whenRoomIsNeeded_thenItIsOverwritten() {
        taken(8 * PAGE).seal(key(1), SUM);
        taken(PAGE).close();
        assertThat(claim(1, 8 * PAGE)).isNull();
    }

    @Test
    void givenABlockLargerThanAll_whenTaken_thenThereIsNoRoomAndNothingIsLost() {
        taken(PAGE).seal(key(1), SUM);
        assertThat(staging.take(8 * PAGE + 1)).isNull();
        assertThat(claim(1, PAGE)).isNotNull();
    }

    @Test
    void givenAKeyThatIsStagedTwice_whenTheOlderIsOverwritten_thenTheNewerIsFound() {
        taken(4 * PAGE).seal(key(1), SUM);
        StagedBlock newer = taken(4 * PAGE);
        newer.seal(key(1), SUM);
        taken(PAGE).close();
        assertThat(claim(1, 4 * PAGE)).isSameAs(newer);
    }

    @Test
    void givenClosedStaging_whenUsed_thenNothingIsTakenOrFoundAndHeldRoomCounts() {
        StagedBlock held = taken(PAGE);
        taken(PAGE).seal(key(1), SUM);
        staging.close();
        assertThat(staging.take(1)).isNull();
        assertThat(claim(1, PAGE)).isNull();
        assertThat(staging.isInUse()).isTrue();
        held.seal(key(2), SUM);
        assertThat(claim(2, PAGE)).isNull();
        assertThat(staging.isInUse()).isFalse();
    }

    /// No two blocks that are held or may be claimed share a byte.
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void givenRandomUse_whenTaken_thenHeldBlocksNeverOverlap(long seed) {
        Random random = new Random(seed);
        List<StagedBlock> held = new ArrayList<>();
        int refused = 0;
        for (int step = 0; step < 20_000; step++) {
            if (random.nextInt(3) > 0) {
                StagedBlock taken = staging.take(1 + random.nextInt(3 * PAGE));
                refused += taken == null ? 1 : 0;
                if (taken != null) {
                    assertThat(held).noneMatch(each -> overlap(each.span(), taken.span()));
                    held.add(taken);
                }
            } else if (!held.isEmpty()) {
                StagedBlock ended = held.remove(random.nextInt(held.size()));
                if (random.nextBoolean()) {
                    ended.close();
                } else {
                    ended.seal(key(step), SUM);
                }
            }
        }
        assertThat(refused).isBetween(1, 19_000);
    }

    private static boolean overlap(DeviceSpan one, DeviceSpan other) {
        long from = Math.max(one.address().value(), other.address().value());
        long to = Math.min(one.address().value() + one.bytes(), other.address().value() + other.bytes());
        return from < to;
    }
}
