package io.kvcache.engines.jlama;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

final class StopTextTest {

    @Test
    void givenAStopInPieces_whenItComes_thenNothingOfItIsShown() {
        StopText stop = new StopText(List.of("END", "\n\n"));
        assertThat(stop.add("say E")).isEqualTo("say ");
        assertThat(stop.add("N")).isEmpty();
        assertThat(stop.add("D of it")).isEmpty();
        assertThat(stop.found()).isTrue();
        assertThat(stop.add("more")).isEmpty();
        assertThat(stop.rest()).isEmpty();
    }

    @Test
    void givenWhatOnlyBeganAsAStop_whenItIsNone_thenItIsShown() {
        StopText stop = new StopText(List.of("END"));
        assertThat(stop.add("E")).isEmpty();
        assertThat(stop.add("NE")).isEqualTo("EN");
        assertThat(stop.rest()).isEqualTo("E");
        assertThat(stop.found()).isFalse();
    }

    @Test
    void givenTwoStops_whenBothAreThere_thenTheFirstEnds() {
        StopText stop = new StopText(List.of("later", "now"));
        assertThat(stop.add("so now or later")).isEqualTo("so ");
        assertThat(stop.found()).isTrue();
    }

    @Test
    void givenNoStop_whenTextComes_thenAllIsShownAtOnce() {
        StopText stop = new StopText(List.of());
        assertThat(stop.add("abc")).isEqualTo("abc");
        assertThat(stop.rest()).isEmpty();
    }
}
