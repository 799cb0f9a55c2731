package io.kvcache.core.memory;

import static io.kvcache.core.memory.SlabPool.NONE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.core.memory.SlabPool.EvictionCost;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class SlabPoolTest {

    private static final long MIB = 1 << 20;
    private static final long SLAB_BYTES = 32 * MIB;

    /// The slabs are real, and let go of with each test: waiting for the collector, the JVM may run out of them.
    private final Arena arena = Arena.ofConfined();

    private final SlabPool pool = pool(arena, 4);

    private static SlabPool pool(Arena arena, int slabs) {
        return new SlabPool(arena.allocate(slabs * SLAB_BYTES, Pages.BYTES), SLAB_BYTES, _ -> true);
    }

    @AfterEach
    void close() {
        arena.close();
    }

    @Test
    void givenAnySize_whenItsClassIsAsked_thenPagesAndNoDuplicates() {
        SlotClass one = pool.classOf(1);
        assertThat(one.slotBytes()).isEqualTo(4096);
        assertThat(pool.classOf(4096)).isSameAs(one);
        assertThat(pool.classOf(4097).slotBytes()).isEqualTo(8192);
        assertThat(pool.classOf(16 * MIB).slotsPerSlab()).isEqualTo(2);
        assertThat(pool.classOf(16 * MIB + 1).slabsPerSlot()).isEqualTo(1);
        assertThat(pool.classOf(33 * MIB).slabsPerSlot()).isEqualTo(2);
        assertThat(pool.classOf(128 * MIB).slabsPerSlot()).isEqualTo(4);
        assertThat(pool.classCount()).isEqualTo(6);
    }

    @Test
    void givenASizeThatDoesNotFit_whenItsClassIsAsked_thenRefusedWithValueAndRange() {
        for (long bytes : new long[] {0, -1, 128 * MIB + 1}) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> pool.classOf(bytes))
                    .withMessageContaining("" + bytes)
                    .withMessageContaining("1 to " + 128 * MIB);
        }
    }

    @Test
    void givenMemoryBelowTheLeast_whenOpened_thenRefused() {
        MemorySegment small = arena.allocate(4096);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new SlabPool(small, 2 * MIB, _ -> true))
                .withMessageContaining("4096")
                .withMessageContaining("" + SlabPool.MIN_BYTES);
    }

    @ParameterizedTest
    @CsvSource({
        "32, 2, 32",
        "47, 2, 46",
        "48, 2, 48",
        "63, 2, 62",
        "64, 4, 64",
        "100, 4, 100",
        "127, 4, 124",
        "128, 8, 128",
        "255, 8, 248",
        "256, 16, 256",
        "511, 16, 496",
        "512, 32, 512",
        "1023, 32, 992",
        "1024, 32, 1024",
        "102400, 32, 102400"
    })
    void givenHostMemory_whenItsSlabsAreAsked_thenSixteenAtLeastAnd32MibAtMost(long mib, long slabMib, long usedMib) {
        assertThat(SlabPool.slabBytes(mib * MIB)).isEqualTo(slabMib * MIB);
        assertThat(SlabPool.wholeSlabs(mib * MIB)).isEqualTo(usedMib * MIB);
        assertThat(SlabPool.slabBytes(usedMib * MIB)).isEqualTo(slabMib * MIB);
    }

    @Test
    void givenSpaceForTwoSlabs_whenAThirdIsWanted_thenThePoolEndsThere() {
        SlabPool small =
                new SlabPool(arena.allocate(4 * SLAB_BYTES, Pages.BYTES), SLAB_BYTES, bytes -> bytes <= 2 * SLAB_BYTES);
        SlotClass whole = small.classOf(SLAB_BYTES);
        assertThat(small.acquire(whole, 1)).isNotEqualTo(NONE);
        assertThat(small.acquire(whole, 2)).isNotEqualTo(NONE);
        assertThat(small.capacityBytes()).isEqualTo(4 * SLAB_BYTES);
        assertThat(small.acquire(whole, 3)).isEqualTo(NONE);
        small.validate();
        assertThat(small.capacityBytes()).isEqualTo(2 * SLAB_BYTES);
        assertThat(small.freeSlabs()).isZero();
        assertThat(small.cheapestRun(1, owners -> owners.live() == 0 ? 0 : 5)).isZero();
        assertThat(small.cheapestRun(3, _ -> 5)).isEqualTo(-1);
        small.release(0);
        assertThat(small.acquire(whole, 4)).isZero();
        small.validate();
    }

    @ParameterizedTest
    @ValueSource(longs = {4096, 300 << 10, MIB, MIB + 1, 2 * MIB, 5 * MIB, 40 * MIB})
    void givenSmallMemory_whenFilledWithOneSize_thenItHasAsManySlotsAsPromised(long slotBytes) {
        SlabPool small = new SlabPool(arena.allocate(48 * MIB, Pages.BYTES), SlabPool.slabBytes(48 * MIB), _ -> true);
        SlotClass slots = small.classOf(slotBytes);
        long taken = 0;
        while (small.acquire(slots, 1) != NONE) {
            taken++;
        }
        assertThat(taken).isPositive().isEqualTo(SlabPool.slotsIn(48 * MIB, slotBytes));
        assertThat(small.slabBytes()).isEqualTo(2 * MIB);
        assertThat(small.slabs()).isEqualTo(24);
        small.validate();
    }

    @Test
    void givenAFullPool_whenOneSlotIsReleased_thenThatOneComesBack() {
        SlotClass slots = pool.classOf(MIB);
        List<Integer> pages = new ArrayList<>();
        for (int record = 0; record < 128; record++) {
            pages.add(pool.acquire(slots, record));
        }
        assertThat(pages).doesNotHaveDuplicates().doesNotContain(NONE);
        assertThat(pool.acquire(slots, 999)).isEqualTo(NONE);
        assertThat(pool.heldBytes()).isEqualTo(pool.capacityBytes());
        pool.release(pages.get(77));
        assertThat(pool.acquire(slots, 999)).isEqualTo(pages.get(77));
        assertThat(pool.owner(pages.get(77))).isEqualTo(999);
        pool.validate();
    }

    @Test
    void givenAFreeSlot_whenReleasedAgain_thenItThrows() {
        int page = pool.acquire(pool.classOf(4096), 1);
        pool.release(page);
        assertThatIllegalStateException().isThrownBy(() -> pool.release(page)).withMessageContaining("twice");
        int run = pool.acquire(pool.classOf(40 * MIB), 1);
        pool.release(run);
        assertThatIllegalStateException().isThrownBy(() -> pool.release(run));
    }

    @Test
    void givenAnEmptySlabOfAnotherClass_whenNoneIsFree_thenItIsTaken() {
        SlotClass small = pool.classOf(4096);
        SlotClass whole = pool.classOf(32 * MIB);
        int page = pool.acquire(small, 1);
        for (int i = 0; i < 3; i++) {
            assertThat(pool.acquire(whole, 2 + i)).isNotEqualTo(NONE);
        }
        assertThat(pool.acquire(whole, 9)).isEqualTo(NONE);
        pool.release(page);
        assertThat(pool.unusedSlabs()).isEqualTo(1);
        assertThat(pool.slabCount(small)).isEqualTo(1);
        assertThat(pool.acquire(whole, 9)).isEqualTo(page);
        assertThat(pool.slabCount(small)).isZero();
        pool.validate();
    }

    @Test
    void givenRunsAndHoles_whenTheCheapestRunIsAsked_thenByThePriceOfWhatItHolds() {
        SlotClass whole = pool.classOf(32 * MIB);
        int[] pages = new int[4];
        for (int i = 0; i < 4; i++) {
            pages[i] = pool.acquire(whole, i);
        }
        Map<Integer, Integer> prices = Map.of(0, 5, 1, 5, 2, 1, 3, -1);
        EvictionCost price = owners -> {
            int[] cost = {0};
            owners.allOwnersMatch(record -> {
                cost[0] = prices.getOrDefault(record, 0);
                return true;
            });
            return cost[0];
        };
        assertThat(pool.cheapestRun(2, price)).isEqualTo(1);
        assertThat(pool.cheapestRun(4, price)).isEqualTo(-1);
        pool.release(pages[0]);
        assertThat(pool.cheapestRun(2, price)).isZero();
        pool.release(pages[3]);
        assertThat(pool.cheapestRun(1, price)).isZero();
        assertThat(pool.ownersAt(3).live()).isZero();
        assertThat(pool.ownersAt(3).classId()).isEqualTo(-1);
        assertThat(pool.ownersAt(1).classId()).isEqualTo(whole.id());
    }

    @Test
    void givenLinkedSlots_whenFollowed_thenInOrderToTheEnd() {
        SlotClass small = pool.classOf(4096);
        SlotClass large = pool.classOf(MIB);
        int first = pool.acquire(large, 1);
        int second = pool.acquire(small, 1);
        pool.next(first, second);
        assertThat(pool.next(first)).isEqualTo(second);
        assertThat(pool.next(second)).isEqualTo(NONE);
        pool.release(first);
        int again = pool.acquire(large, 2);
        assertThat(again).isEqualTo(first);
        assertThat(pool.next(again)).isEqualTo(NONE);
    }

    /// Slots of many classes at random; those that are held never overlap, and each keeps its owner.
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    void givenRandomSizes_whenTakenAndReleased_thenHeldSpansNeverOverlap(long seed) {
        long[] sizes = {4096, 12 << 10, 64 << 10, MIB, 3 * MIB, 16 * MIB, 20 * MIB, 40 * MIB, 70 * MIB};
        try (Arena own = Arena.ofConfined()) {
            SplittableRandom random = new SplittableRandom(seed);
            SlabPool slabs = pool(own, 6);
            NavigableMap<Integer, Long> held = new TreeMap<>();
            long heldBytes = 0;
            for (int step = 0; step < 4000; step++) {
                String when = "seed " + seed + " step " + step;
                if (random.nextInt(5) < 3) {
                    SlotClass slotClass = slabs.classOf(sizes[random.nextInt(sizes.length)]);
                    int page = slabs.acquire(slotClass, step);
                    if (page != NONE) {
                        requireApart(held, page, slotClass.slotBytes(), when);
                        assertThat(slabs.slotBytes(page)).isEqualTo(slotClass.slotBytes());
                        assertThat(slabs.owner(page)).as(when).isEqualTo(step);
                        held.put(page, slotClass.slotBytes());
                        heldBytes += slotClass.slotBytes();
                    }
                } else if (!held.isEmpty()) {
                    Map.Entry<Integer, Long> any = held.floorEntry(random.nextInt(held.lastKey() + 1));
                    Map.Entry<Integer, Long> gone = any == null ? held.firstEntry() : any;
                    held.remove(gone.getKey());
                    heldBytes -= gone.getValue();
                    slabs.release(gone.getKey());
                }
                slabs.validate();
                assertThat(slabs.heldBytes()).as(when).isEqualTo(heldBytes);
            }
        }
    }

    private static void requireApart(NavigableMap<Integer, Long> held, int page, long bytes, String when) {
        Map.Entry<Integer, Long> before = held.floorEntry(page);
        Map.Entry<Integer, Long> after = held.ceilingEntry(page);
        long from = Pages.offset(page);
        assertThat(from + bytes).as(when).isLessThanOrEqualTo(6 * SLAB_BYTES);
        if (before != null) {
            assertThat(Pages.offset(before.getKey()) + before.getValue())
                    .as(when)
                    .isLessThanOrEqualTo(from);
        }
        if (after != null) {
            assertThat(from + bytes).as(when).isLessThanOrEqualTo(Pages.offset(after.getKey()));
        }
    }
}
