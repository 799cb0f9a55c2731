package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/// When a client asks for coded blocks.
final class LinkCodingTest {

    private static final long MIB = 1 << 20;

    private final LinkCoding coding = new LinkCoding();

    /// Answers how many of so many transfers were asked for coded.
    ///
    /// @param plainPace bytes a nanosecond, and the other of coded blocks
    private int transfers(int count, double plainPace, double codedPace) {
        int coded = 0;
        for (int i = 0; i < count; i++) {
            boolean wanted = coding.isWanted(2 * MIB);
            coded += wanted ? 1 : 0;
            coding.onTransfer(wanted, 8 * MIB, (long) (8 * MIB / (wanted ? codedPace : plainPace)));
        }
        return coded;
    }

    @Test
    void givenAFastLink_whenBlocksCome_thenCodedOnesAreNeverAskedFor() {
        assertThat(transfers(1000, 2.5, 9)).isZero();
    }

    @Test
    void givenASlowLink_whenCodedBlocksComeFaster_thenMostAreCoded() {
        assertThat(transfers(4, 1.0, 1.3)).isZero();
        assertThat(transfers(1000, 1.0, 1.3)).isBetween(900, 950);
    }

    @Test
    void givenASlowLink_whenCodedBlocksComeNoFaster_thenTheyAreTriedNowAndThen() {
        assertThat(transfers(1004, 1.0, 1.05)).isBetween(50, 70);
    }

    @Test
    void givenALinkThatChanges_whenBlocksCome_thenTheChoiceFollows() {
        transfers(100, 1.0, 1.3);
        assertThat(transfers(400, 1.9, 1.2)).isLessThan(120);
        assertThat(transfers(400, 0.1, 0.13)).isGreaterThan(250);
    }

    @Test
    void givenSmallTransfers_whenTimed_thenTheyTellNothing() {
        for (int i = 0; i < 100; i++) {
            coding.onTransfer(false, MIB / 2, MIB);
        }
        assertThat(coding.isWanted(2 * MIB)).isFalse();
    }

    @Test
    void givenSmallBlocks_whenAsked_thenTheyAreNotCoded() {
        assertThat(new LinkCoding(true).isWanted(4096)).isFalse();
        assertThat(new LinkCoding(true).isWanted(2 * MIB)).isTrue();
        assertThat(new LinkCoding(false).isWanted(2 * MIB)).isFalse();
    }
}
