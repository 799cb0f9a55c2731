package io.kvcache.engines.generator;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.engines.generator.TextAnswer.StopTextFilter;
import java.util.List;
import org.junit.jupiter.api.Test;

final class StopTextFilterTest {

    @Test
    void givenAStopInPieces_whenItComes_thenNothingOfItIsShown() {
        StopTextFilter stop = new StopTextFilter(List.of("END", "\n\n"));
        assertThat(stop.add("say E")).isEqualTo("say ");
        assertThat(stop.add("N")).isEmpty();
        assertThat(stop.add("D of it")).isEmpty();
        assertThat(stop.isFound()).isTrue();
        assertThat(stop.add("more")).isEmpty();
        assertThat(stop.flush()).isEmpty();
    }

    @Test
    void givenWhatOnlyBeganAsAStop_whenItIsNone_thenItIsShown() {
        StopTextFilter stop = new StopTextFilter(List.of("END"));
        assertThat(stop.add("E")).isEmpty();
        assertThat(stop.add("NE")).isEqualTo("EN");
        assertThat(stop.flush()).isEqualTo("E");
        assertThat(stop.isFound()).isFalse();
    }

    @Test
    void givenTwoStops_whenBothAreThere_thenTheFirstEnds() {
        StopTextFilter stop = new StopTextFilter(List.of("later", "now"));
        assertThat(stop.add("so now or later")).isEqualTo("so ");
        assertThat(stop.isFound()).isTrue();
    }

    @Test
    void givenNoStop_whenTextComes_thenAllIsShownAtOnce() {
        StopTextFilter stop = new StopTextFilter(List.of());
        assertThat(stop.add("abc")).isEqualTo("abc");
        assertThat(stop.flush()).isEmpty();
    }
}
