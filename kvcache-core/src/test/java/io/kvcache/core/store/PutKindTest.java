package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

final class PutKindTest {

    @Test
    void givenBlocksPutAtOnce_whenThereAreMoreOrMoreWereHere_thenTheyAreOfAnotherKind() {
        int begun = PutKind.of(20, 0);
        assertThat(PutKind.of(40, 0)).isNotEqualTo(begun);
        assertThat(PutKind.of(20, 1)).isNotEqualTo(begun);
        assertThat(PutKind.of(21, 0)).as("in powers of two").isEqualTo(begun);
        assertThat(PutKind.group(PutKind.of(20, 1))).isEqualTo(PutKind.group(begun));
        assertThat(PutKind.group(PutKind.of(40, 0))).isNotEqualTo(PutKind.group(begun));
    }

    @Test
    void givenABlockPutAlone_whenItLiesDeeper_thenItIsOfAnotherKindOfTheSameGroup() {
        assertThat(PutKind.alone(0)).isNotEqualTo(PutKind.alone(1)).isNotEqualTo(PutKind.of(1, 0));
        assertThat(PutKind.group(PutKind.alone(0))).isEqualTo(PutKind.group(PutKind.alone(1000)));
        assertThat(PutKind.isAlone(PutKind.alone(0))).isTrue();
        assertThat(PutKind.isAlone(PutKind.of(Integer.MAX_VALUE, Integer.MAX_VALUE)))
                .isFalse();
    }

    @Test
    void givenAnyNumbers_whenAsked_thenKindsAndGroupsAreWithinTheirCounts() {
        Set<Integer> kinds = new HashSet<>();
        for (int power = 0; power < Integer.SIZE; power++) {
            int blocks = (int) ((1L << power) - 1);
            kinds.add(PutKind.alone(blocks));
            kinds.add(PutKind.alone(blocks - (blocks >>> 2)));
            for (int other = 0; other < Integer.SIZE; other++) {
                kinds.add(PutKind.of(Math.max(1, blocks), (int) ((1L << other) - 1)));
            }
        }
        assertThat(kinds).allMatch(kind -> kind >= 0 && kind < PutKind.COUNT);
        assertThat(kinds).allMatch(kind -> PutKind.group(kind) >= 0 && PutKind.group(kind) < PutKind.GROUPS);
        assertThat(kinds).contains(0, PutKind.COUNT - 1);
    }
}
