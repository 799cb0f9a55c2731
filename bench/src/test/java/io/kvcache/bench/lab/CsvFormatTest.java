package io.kvcache.bench.lab;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

final class CsvFormatTest {

    @Test
    void givenARow_whenWritten_thenItHasAValueForEachHead() {
        TierRow row = new TierRow(
                "a", "store", "lru", "always", 200, 0.02, 1000, 0.1, 0.3, 0.29, 0.1, 0.4, 700.5, 50, 650.5, 0.2, 3, 0.9,
                0.8, 10, 20, 30, 100, 0.25, 0.3, 0, 1.5);
        assertThat(TierRow.CSV_HEAD)
                .startsWith("trace,run,policy,admission,host_blocks,host_share,disk_blocks,disk_share,block_hit_ratio,")
                .contains(
                        ",saved_less_loading_seconds,ttft_p50_seconds,ttft_p99_seconds,host_occupancy,disk_occupancy,")
                .endsWith(",disk_blocks_written,written_of_put,disk_bytes_of_put,wrong_blocks,seconds");
        assertThat(row.csv())
                .isEqualTo("a,store,lru,always,200,0.02,1000,0.1,0.3,0.29,0.1,0.4,700.5,50.0,650.5,0.2,3.0,"
                        + "0.9,0.8,10,20,30,100,0.25,0.3,0,1.5");
    }

    @Test
    void givenNamesWithSigns_whenWritten_thenTheyStandInQuotes() {
        LabRow row = new LabRow("a,\"b\".jsonl", "c\nd", "lru", 0.1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        assertThat(row.csv()).startsWith("\"a,\"\"b\"\".jsonl\",\"c\nd\",lru,0.1,");
    }
}
