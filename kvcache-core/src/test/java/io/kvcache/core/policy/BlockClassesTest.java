package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.policy.ImportanceWord.BlockClasses;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class BlockClassesTest {

    @Test
    void givenEveryPlaceOfEveryGroup_whenClassed_thenEachClassIsMetInOrderAndKnowsItsGroup() {
        List<Integer> met = new ArrayList<>();
        for (int group = 0; group < BlockClasses.GROUPS; group++) {
            for (boolean last : new boolean[] {false, true}) {
                for (int cohort = 0; cohort < NoveltyClass.COUNT; cohort++) {
                    int classId = BlockClasses.classOf(group, last, cohort);
                    assertThat(BlockClasses.group(classId)).isEqualTo(group);
                    assertThat(classId)
                            .isBetween(BlockClasses.firstClass(group), BlockClasses.firstClass(group + 1) - 1);
                    if (!met.contains(classId)) {
                        met.add(classId);
                    }
                }
            }
        }
        assertThat(met).isSorted().hasSize(BlockClasses.COUNT).contains(0, BlockClasses.COUNT - 1);
        assertThat(BlockClasses.firstClass(BlockClasses.GROUPS)).isEqualTo(BlockClasses.COUNT);
    }

    @Test
    void givenBlocksUsedVeryOften_whenTheirPlacesDiffer_thenTheirClassDoesNot() {
        int group = BlockClasses.GROUPS - 1;
        assertThat(BlockClasses.classOf(group, true, 2)).isEqualTo(BlockClasses.classOf(group, false, 0));
        assertThat(BlockClasses.classOf(0, true, 2)).isNotEqualTo(BlockClasses.classOf(0, false, 2));
        assertThat(BlockClasses.classOf(0, true, 0)).isEqualTo(BlockClasses.classOf(0, true, 2));
        assertThat(BlockClasses.classOf(0, true, 2)).isNotEqualTo(BlockClasses.classOf(0, true, 4));
    }
}
