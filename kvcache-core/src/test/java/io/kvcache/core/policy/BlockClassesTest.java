package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class BlockClassesTest {

    @Test
    void givenEveryPlaceOfEveryGroup_whenClassed_thenEachClassIsMetInOrderAndKnowsItsGroup() {
        List<Integer> met = new ArrayList<>();
        for (int group = 0; group < BlockClasses.GROUPS; group++) {
            for (boolean last : new boolean[] {false, true}) {
                for (int cohort = 0; cohort < Cohort.STEPS; cohort++) {
                    int classId = BlockClasses.of(group, last, cohort);
                    assertThat(BlockClasses.group(classId)).isEqualTo(group);
                    assertThat(classId).isBetween(BlockClasses.first(group), BlockClasses.first(group + 1) - 1);
                    if (!met.contains(classId)) {
                        met.add(classId);
                    }
                }
            }
        }
        assertThat(met).isSorted().hasSize(BlockClasses.COUNT).contains(0, BlockClasses.COUNT - 1);
        assertThat(BlockClasses.first(BlockClasses.GROUPS)).isEqualTo(BlockClasses.COUNT);
    }

    @Test
    void givenBlocksUsedVeryOften_whenTheirPlacesDiffer_thenTheirClassDoesNot() {
        int group = BlockClasses.GROUPS - 1;
        assertThat(BlockClasses.of(group, true, 2)).isEqualTo(BlockClasses.of(group, false, 0));
        assertThat(BlockClasses.of(0, true, 2)).isNotEqualTo(BlockClasses.of(0, false, 2));
        assertThat(BlockClasses.of(0, true, 0)).isEqualTo(BlockClasses.of(0, true, 2));
        assertThat(BlockClasses.of(0, true, 2)).isNotEqualTo(BlockClasses.of(0, true, 4));
    }
}
