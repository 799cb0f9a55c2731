package io.kvcache.gpu.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.gpu.driver.CopyBatch.CopyRanges;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class CopyBatchTest {

    private static final int PIECE = 4096;
    private static final DeviceAddress DEVICE = new DeviceAddress(1L << 40);

    private final PinnedHostRanges registered = new PinnedHostRanges();
    private final AllocationTable slabs = new AllocationTable();
    /// Begins five bytes before a page does.
    private final MemorySegment host =
            Arena.ofAuto().allocate(4097L * PIECE, PIECE).asSlice(PIECE - 5, 4096L * PIECE);

    private MemorySegment piece(int index) {
        return host.asSlice((long) index * PIECE, PIECE);
    }

    private static DeviceAddress place(int index) {
        return DEVICE.plus((long) index * PIECE);
    }

    @Test
    void givenAdjacentPiecesInAnyOrder_whenCoalesced_thenOneRun() {
        List<Integer> order = new ArrayList<>();
        for (int i = 0; i < 4096; i++) {
            order.add(i);
        }
        Collections.shuffle(order, new Random(1));
        CopyBatch batch = CopyBatch.toDevice();
        order.forEach(i -> batch.add(piece(i), place(i)));
        CopyRanges runs = batch.toRanges(registered, slabs);
        assertThat(batch.pieces()).isEqualTo(4096);
        assertThat(runs.count()).isEqualTo(1);
        assertThat(runs.from(0)).isEqualTo(host.address());
        assertThat(runs.to(0)).isEqualTo(DEVICE.value());
        assertThat(runs.bytes(0)).isEqualTo(batch.bytes()).isEqualTo(4096L * PIECE);
    }

    @Test
    void givenPiecesAdjacentOnOneSideOnly_whenCoalesced_thenTheyStayApart() {
        CopyBatch batch = CopyBatch.toHost();
        batch.add(piece(0), place(0));
        batch.add(piece(1), place(2));
        batch.add(piece(3), place(3));
        assertThat(batch.toRanges(registered, slabs).count()).isEqualTo(3);
    }

    @Test
    void givenBordersOfRegistrations_whenCoalesced_thenNoRunCrossesOne() {
        registered.add(host.asSlice(0, 10L * PIECE + 5));
        registered.add(host.asSlice(10L * PIECE + 5, 10L * PIECE));
        CopyBatch batch = CopyBatch.toHost();
        for (int i = 0; i < 30; i++) {
            batch.add(piece(i), place(i));
        }
        CopyRanges runs = batch.toRanges(registered, slabs);
        assertThat(runs.count()).isEqualTo(3);
        assertThat(runs.bytes(0)).isEqualTo(10L * PIECE + 5);
        assertThat(runs.bytes(1)).isEqualTo(10L * PIECE);
        assertThat(runs.bytes(2)).isEqualTo(10L * PIECE - 5);
        assertThat(runs.to(1)).isEqualTo(host.address() + runs.bytes(0));
        assertThat(runs.from(1)).isEqualTo(DEVICE.value() + runs.bytes(0));
    }

    @Test
    void givenAllocationsSideBySide_whenCoalesced_thenNoRunGoesFromOneIntoTheNext() {
        slabs.add(new DeviceSpan(DEVICE, 10L * PIECE));
        slabs.add(new DeviceSpan(place(10), 10L * PIECE));
        slabs.addMapped(new DeviceSpan(place(20), 5L * PIECE));
        slabs.addMapped(new DeviceSpan(place(25), 5L * PIECE));
        CopyBatch up = CopyBatch.toDevice();
        CopyBatch within = CopyBatch.within();
        for (int i = 0; i < 30; i++) {
            up.add(piece(i), place(i));
            within.add(place(i), place(i + 40), PIECE);
        }
        for (CopyBatch batch : List.of(up, within)) {
            CopyRanges runs = batch.toRanges(registered, slabs);
            assertThat(runs.count()).isEqualTo(3);
            for (int run = 0; run < 3; run++) {
                assertThat(runs.bytes(run)).isEqualTo(10L * PIECE);
            }
        }
    }

    @Test
    void givenTwoPiecesForOnePlace_whenCoalesced_thenRefused() {
        CopyBatch batch = CopyBatch.toDevice();
        batch.add(piece(0), place(0));
        batch.add(piece(5), place(0).plus(PIECE - 1));
        assertThatIllegalArgumentException().isThrownBy(() -> batch.toRanges(registered, slabs));
    }

    @Test
    void givenABatchOfOneDirection_whenGivenAPieceOfAnother_thenRefused() {
        assertThatIllegalArgumentException().isThrownBy(() -> CopyBatch.within().add(piece(0), place(0)));
        assertThatIllegalArgumentException().isThrownBy(() -> CopyBatch.toHost().add(place(0), place(1), 5));
    }

    @Test
    void givenABatch_whenCleared_thenNothingIsCopied() {
        CopyBatch batch = CopyBatch.within();
        batch.add(place(0), place(9), 5);
        batch.clear();
        assertThat(batch.toRanges(registered, slabs).count()).isZero();
    }
}
