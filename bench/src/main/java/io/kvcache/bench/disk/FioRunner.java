package io.kvcache.bench.disk;

import io.kvcache.bench.disk.DiskRun.AccessPattern;
import io.kvcache.bench.disk.DiskRun.IoWorkload;
import io.kvcache.bench.disk.DiskRun.TransferResult;
import io.kvcache.server.doctor.ProcessRunner;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// Runs workloads through fio.
///
/// It is held to what it can do, not to what it does by default. Its buffers lie in huge pages as ours do, by
/// a setting of glibc 2.35 and an alignment: a transfer has fewer pieces then, which made a virtual disk half
/// as fast again. And it does not scribble into what it is about to write.
public final class FioRunner {

    /// Advice when fio is not installed.
    static final String INSTALL_HINT = "install fio (Debian: apt-get install fio)";

    private static final int HUGE_PAGE_BYTES = 2 << 20;

    /// A trial takes a second or so.
    private static final Duration TIMEOUT = Duration.ofMinutes(5);

    private FioRunner() {}

    static boolean isInstalled() {
        try {
            return output(List.of("fio", "--version")).startsWith("fio");
        } catch (IOException absent) {
            return false;
        }
    }

    /// With io_uring at its best.
    static TransferResult runUring(IoWorkload work) throws IOException {
        return run(uringCommand(work));
    }

    /// With threads that read and write blockingly, as many as the queue is deep.
    static TransferResult runThreads(IoWorkload work) throws IOException {
        return run(threadsCommand(work));
    }

    static List<String> uringCommand(IoWorkload work) {
        List<String> command = command(work);
        command.addAll(List.of(
                "--ioengine=io_uring",
                "--fixedbufs=1",
                "--registerfiles=1",
                "--iodepth=" + work.depth(),
                "--size=" + work.fileBytes(),
                "--io_size=" + work.totalBytes()));
        return command;
    }

    /// Readers read anywhere; writers have a part of the file each. All end with the first, so that no
    /// straggler counts against the others: ours share one queue and have none.
    static List<String> threadsCommand(IoWorkload work) {
        long part = work.fileBytes() / work.depth();
        List<String> command = command(work);
        command.addAll(List.of(
                "--ioengine=psync",
                "--iodepth=1",
                "--numjobs=" + work.depth(),
                "--group_reporting",
                "--exitall",
                "--io_size=" + work.totalBytes() / work.depth()));
        command.addAll(
                work.pattern().isWrite()
                        ? List.of("--size=" + part, "--offset_increment=" + part)
                        : List.of("--size=" + work.fileBytes()));
        return command;
    }

    private static List<String> command(IoWorkload work) {
        return new ArrayList<>(List.of(
                "fio",
                "--name=kvcache",
                "--filename=" + work.file(),
                "--rw=" + (work.pattern().isWrite() ? "write" : "randread"),
                "--bs=" + work.pieceBytes(),
                "--direct=1",
                "--thread",
                "--iomem_align=" + HUGE_PAGE_BYTES,
                "--scramble_buffers=0",
                "--norandommap",
                "--randseed=" + AccessPattern.SEED,
                "--allow_file_create=0",
                "--fallocate=none",
                "--output-format=json"));
    }

    private static TransferResult run(List<String> command) throws IOException {
        return FioReport.parse(output(command)).toTransferResult();
    }

    /// Returns the standard output; standard error goes to ours.
    private static String output(List<String> command) throws IOException {
        ProcessBuilder builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().put("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
        ProcessRunner.ProcessOutput output = ProcessRunner.run(TIMEOUT, builder);
        if (!output.isSuccessful()) {
            String how = output.isFinished() ? "failed: " : "did not end within " + TIMEOUT.toSeconds() + " s: ";
            throw new IOException(how + String.join(" ", command) + System.lineSeparator() + output.text());
        }
        return output.text();
    }

    /// A program that has to be installed first; the message says how.
    public static final class MissingToolException extends IOException {

        private static final long serialVersionUID = 1;

        MissingToolException(String advice) {
            super(advice);
        }
    }

    /// The result that fio reports for a job or a group of jobs, in its JSON of version 3.
    ///
    /// @param bytes read and written
    /// @param runMillis from the first request to the last completion; of a group, the longest
    /// @param jobMillis of a group, the sum
    /// @param cpuPercent user and system time as a share of `jobMillis`
    record FioReport(long bytes, long runMillis, long jobMillis, double cpuPercent) {

        private static final JsonMapper JSON = JsonMapper.builder().build();

        /// @param text fio's output, where complaints may come before the JSON
        /// @throws IOException that says what is missing
        static FioReport parse(String text) throws IOException {
            JsonNode job = job(text);
            JsonNode read = job.path("read");
            JsonNode write = job.path("write");
            if (job.path("error").asInt(0) != 0) {
                throw new IOException(
                        "fio failed with error " + job.path("error").asInt(0));
            }
            FioReport report = new FioReport(
                    number(read, "io_bytes") + number(write, "io_bytes"),
                    number(read, "runtime") + number(write, "runtime"),
                    number(job, "job_runtime"),
                    required(job, "usr_cpu").asDouble()
                            + required(job, "sys_cpu").asDouble());
            if (report.bytes == 0 || report.runMillis == 0) {
                throw new IOException("fio moved nothing: " + report);
            }
            return report;
        }

        private static JsonNode job(String text) throws IOException {
            int start = text.indexOf('{');
            if (start < 0) {
                throw new IOException("fio printed no JSON: " + text.strip());
            }
            try {
                return required(JSON.readTree(text.substring(start)).path("jobs"), 0);
            } catch (JacksonException broken) {
                throw new IOException("fio printed broken JSON: " + broken.getOriginalMessage(), broken);
            }
        }

        private static JsonNode required(JsonNode jobs, int index) throws IOException {
            JsonNode job = jobs.path(index);
            if (job.isMissingNode()) {
                throw new IOException("fio reported no job");
            }
            return job;
        }

        private static JsonNode required(JsonNode node, String field) throws IOException {
            JsonNode value = node.path(field);
            if (!value.isNumber()) {
                throw new IOException("fio's JSON has no number " + field);
            }
            return value;
        }

        private static long number(JsonNode node, String field) throws IOException {
            return required(node, field).asLong();
        }

        TransferResult toTransferResult() {
            return new TransferResult(bytes, runMillis / 1e3, cpuPercent / 100 * jobMillis / 1e3, 0, "");
        }
    }
}
