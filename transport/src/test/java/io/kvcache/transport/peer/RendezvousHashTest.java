package io.kvcache.transport.peer;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockKey;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

final class RendezvousHashTest {

    private static final int KEYS = 30_000;
    private static final List<String> NAMES = List.of("a:7420", "b:7420", "c:7420");

    private static BlockKey key(SplittableRandom random) {
        return new BlockKey(random.nextLong(), random.nextLong());
    }

    @Test
    void givenThreePeers_whenKeysAreSpread_thenEachHasAThird() {
        RendezvousHash rendezvousHash = new RendezvousHash(NAMES);
        SplittableRandom random = new SplittableRandom(1);
        int[] first = new int[3];
        for (int i = 0; i < KEYS; i++) {
            int[] order = rendezvousHash.rankedPeers(key(random));
            assertThat(Arrays.stream(order).sorted()).containsExactly(0, 1, 2);
            first[order[0]]++;
        }
        for (int count : first) {
            assertThat(count).isBetween(KEYS / 3 - 600, KEYS / 3 + 600);
        }
    }

    @Test
    void givenAPeerLess_whenAsked_thenOnlyItsKeysMove() {
        RendezvousHash all = new RendezvousHash(NAMES);
        RendezvousHash less = new RendezvousHash(NAMES.subList(0, 2));
        SplittableRandom random = new SplittableRandom(2);
        for (int i = 0; i < 1000; i++) {
            BlockKey key = key(random);
            int[] before = all.rankedPeers(key);
            int expected = before[0] == 2 ? before[1] : before[0];
            assertThat(less.rankedPeers(key)[0]).isEqualTo(expected);
        }
    }

    @Test
    void givenTheSameNames_whenListedOtherwise_thenTheSameNameIsChosen() {
        List<String> other = List.of("c:7420", "a:7420", "b:7420");
        RendezvousHash first = new RendezvousHash(NAMES);
        RendezvousHash second = new RendezvousHash(other);
        SplittableRandom random = new SplittableRandom(3);
        for (int i = 0; i < 1000; i++) {
            BlockKey key = key(random);
            assertThat(other.get(second.rankedPeers(key)[0])).isEqualTo(NAMES.get(first.rankedPeers(key)[0]));
        }
    }

    /// Who shares peers with an older release must choose as that one does.
    @Test
    void givenAKey_whenAsked_thenThisOrderForEver() {
        assertThat(new RendezvousHash(NAMES).rankedPeers(new BlockKey(1, 2))).containsExactly(EXPECTED);
    }

    private static final int[] EXPECTED = {0, 1, 2};
}
