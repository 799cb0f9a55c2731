package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.store.WriteAdmission.PromptClass;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

final class PromptClassTest {

    @Test
    void givenBlocksPutAtOnce_whenThereAreMoreOrMoreWereHere_thenTheyAreOfAnotherKind() {
        int begun = PromptClass.of(20, 0);
        assertThat(PromptClass.of(40, 0)).isNotEqualTo(begun);
        assertThat(PromptClass.of(20, 1)).isNotEqualTo(begun);
        assertThat(PromptClass.of(21, 0)).as("in powers of two").isEqualTo(begun);
        assertThat(PromptClass.group(PromptClass.of(20, 1))).isEqualTo(PromptClass.group(begun));
        assertThat(PromptClass.group(PromptClass.of(40, 0))).isNotEqualTo(PromptClass.group(begun));
    }

    @Test
    void givenABlockPutAlone_whenItLiesDeeper_thenItIsOfAnotherKindOfTheSameGroup() {
        assertThat(PromptClass.ofSingleBlock(0))
                .isNotEqualTo(PromptClass.ofSingleBlock(1))
                .isNotEqualTo(PromptClass.of(1, 0));
        assertThat(PromptClass.group(PromptClass.ofSingleBlock(0)))
                .isEqualTo(PromptClass.group(PromptClass.ofSingleBlock(1000)));
        assertThat(PromptClass.isSingleBlock(PromptClass.ofSingleBlock(0))).isTrue();
        assertThat(PromptClass.isSingleBlock(PromptClass.of(Integer.MAX_VALUE, Integer.MAX_VALUE)))
                .isFalse();
    }

    @Test
    void givenAnyNumbers_whenAsked_thenKindsAndGroupsAreWithinTheirCounts() {
        Set<Integer> kinds = new HashSet<>();
        for (int power = 0; power < Integer.SIZE; power++) {
            int blocks = (int) ((1L << power) - 1);
            kinds.add(PromptClass.ofSingleBlock(blocks));
            kinds.add(PromptClass.ofSingleBlock(blocks - (blocks >>> 2)));
            for (int other = 0; other < Integer.SIZE; other++) {
                kinds.add(PromptClass.of(Math.max(1, blocks), (int) ((1L << other) - 1)));
            }
        }
        assertThat(kinds).allMatch(kind -> kind >= 0 && kind < PromptClass.COUNT);
        assertThat(kinds)
                .allMatch(kind -> PromptClass.group(kind) >= 0 && PromptClass.group(kind) < PromptClass.GROUPS);
        assertThat(kinds).contains(0, PromptClass.COUNT - 1);
    }
}
