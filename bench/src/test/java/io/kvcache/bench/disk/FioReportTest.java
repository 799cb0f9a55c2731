package io.kvcache.bench.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.bench.disk.DiskRun.TransferResult;
import io.kvcache.bench.disk.FioRunner.FioReport;
import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class FioReportTest {

    /// Of fio 3.33, cut down to what is read and some of what is not.
    private static final String READ = """
            {
              "fio version" : "fio-3.33",
              "jobs" : [
                {
                  "jobname" : "kvcache",
                  "error" : 0,
                  "read" : { "io_bytes" : 4294967296, "bw_bytes" : 13379960423, "runtime" : 321, "iops" : 12760.1 },
                  "write" : { "io_bytes" : 0, "bw_bytes" : 0, "runtime" : 0 },
                  "job_runtime" : 320,
                  "usr_cpu" : 1.250000,
                  "sys_cpu" : 8.750000
                }
              ]
            }
            """;

    private static final String GROUP_OF_WRITERS = """
            {"jobs": [{"error": 0, "job_runtime": 3000, "usr_cpu": 0.5, "sys_cpu": 9.5,
                "read": {"io_bytes": 0, "runtime": 0}, "write": {"io_bytes": 4000000, "runtime": 400}}]}
            """;

    @Test
    void givenJobThatReads_whenParsed_thenItsSpeedIsBytesByTimeAndItsCpuAShareOfTheJob() throws IOException {
        TransferResult transferResult = FioReport.parse(READ).toTransferResult();
        assertThat(transferResult.bytes()).isEqualTo(4_294_967_296L);
        assertThat(transferResult.gigabytesPerSecond()).isCloseTo(13.38, within(0.01));
        assertThat(transferResult.cpuSeconds()).isCloseTo(0.032, within(1e-9));
        assertThat(transferResult.path()).isEmpty();
    }

    @Test
    void givenGroupOfWriters_whenParsed_thenCpuIsAShareOfAllTheirTime() throws IOException {
        FioReport report = FioReport.parse(GROUP_OF_WRITERS);
        assertThat(report).isEqualTo(new FioReport(4_000_000, 400, 3000, 10));
        assertThat(report.toTransferResult().seconds()).isEqualTo(0.4);
        assertThat(report.toTransferResult().cpuSeconds()).isCloseTo(0.3, within(1e-9));
    }

    @Test
    void givenRemarkBeforeTheJson_whenParsed_thenItIsPassedOver() throws IOException {
        assertThat(FioReport.parse("note: both iodepth >= 1 and synchronous engine\n" + READ))
                .isEqualTo(FioReport.parse(READ));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "fio: job startup failed | printed no JSON: fio: job startup failed",
                "{\"jobs\": [ | broken JSON",
                "{\"jobs\": []} | reported no job",
                "{\"jobs\": [{\"error\": 5}]} | failed with error 5",
                "{\"jobs\": [{\"error\": 0}]} | no number io_bytes",
            })
    void givenOutputOfAFailure_whenParsed_thenTheErrorSaysWhatIsMissing(String output, String error) {
        assertThatIOException().isThrownBy(() -> FioReport.parse(output)).withMessageContaining(error);
    }

    @Test
    void givenJobThatMovedNothing_whenParsed_thenThatIsAnError() {
        assertThatIOException()
                .isThrownBy(() -> FioReport.parse(READ.replace("4294967296", "0")))
                .withMessageContaining("moved nothing");
    }
}
