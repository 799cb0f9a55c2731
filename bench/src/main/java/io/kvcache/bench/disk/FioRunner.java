package io.kvcache.bench.disk;

import io.kvcache.server.program.ProcessRunner;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/// Runs workloads through fio.
///
/// It is held to what it can do, not to what it does by default. Its buffers lie in huge pages as ours do, by
/// a setting of glibc 2.35 and an alignment: a transfer has fewer pieces then, which made a virtual disk half
/// as fast again. And it does not scribble into what it is about to write.
final class FioRunner {

    /// What to do when there is none.
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

    /// What it prints; its complaints go where ours do.
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
}
