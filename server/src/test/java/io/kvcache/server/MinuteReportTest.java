package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

final class MinuteReportTest {

    @Test
    void givenCounts_whenSomeHaveGrown_thenThoseAreToldWithWhatWasAdded() {
        AtomicLong refused = new AtomicLong(7);
        AtomicLong cut = new AtomicLong();
        MinuteReport report = new MinuteReport();
        report.add("values found no room", refused::get);
        report.add("connections were cut", cut::get);
        assertThat(report.lines()).isEmpty();
        refused.addAndGet(5);
        assertThat(report.lines()).containsExactly("5 values found no room");
        assertThat(report.lines()).isEmpty();
        refused.incrementAndGet();
        cut.incrementAndGet();
        assertThat(report.lines()).containsExactly("1 values found no room", "1 connections were cut");
    }
}
