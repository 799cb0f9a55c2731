package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.policy.NoveltyClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class IdentityTest {

    private static final int MARKS = Identity.OBJECT
            | Identity.QUEUED
            | Identity.WRITING
            | Identity.USES
            | Identity.USED_ON_DISK
            | Identity.OVER
            | Identity.FRESH;

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 0x7FFF, 0x8000, Namespaces.MAX - 1})
    void givenANamespaceAndACohort_whenAllMarksAreSetOrNone_thenBothStay(int namespace) {
        for (int cohort = -1; cohort < NoveltyClass.COUNT; cohort++) {
            int put = Identity.block(namespace, cohort);
            for (int identity : new int[] {put, put & ~MARKS, put | MARKS}) {
                assertThat(Identity.namespace(identity)).isEqualTo(namespace);
                assertThat(Identity.cohort(identity)).isEqualTo(cohort);
            }
            assertThat(put & MARKS).isEqualTo(Identity.FRESH);
        }
        assertThat(Identity.cohort(Identity.block(namespace))).isEqualTo(-1);
        assertThat(Identity.cohort(Identity.object(namespace))).isEqualTo(-1);
    }
}
