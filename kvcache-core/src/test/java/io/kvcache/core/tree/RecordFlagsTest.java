package io.kvcache.core.tree;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.policy.NoveltyClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class RecordFlagsTest {

    private static final int MARKS = RecordFlags.OBJECT
            | RecordFlags.QUEUED
            | RecordFlags.WRITING
            | RecordFlags.USES
            | RecordFlags.USED_ON_DISK
            | RecordFlags.EXPIRED
            | RecordFlags.FRESH;

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 0x7FFF, 0x8000, 0xFFFF})
    void givenANamespaceAndACohort_whenAllMarksAreSetOrNone_thenBothStay(int namespace) {
        for (int cohort = -1; cohort < NoveltyClass.COUNT; cohort++) {
            int put = RecordFlags.ofBlock(namespace, cohort);
            for (int identity : new int[] {put, put & ~MARKS, put | MARKS}) {
                assertThat(RecordFlags.namespaceId(identity)).isEqualTo(namespace);
                assertThat(RecordFlags.noveltyClass(identity)).isEqualTo(cohort);
            }
            assertThat(put & MARKS).isEqualTo(RecordFlags.FRESH);
        }
        assertThat(RecordFlags.noveltyClass(RecordFlags.ofBlock(namespace))).isEqualTo(-1);
        assertThat(RecordFlags.noveltyClass(RecordFlags.ofObject(namespace))).isEqualTo(-1);
    }
}
