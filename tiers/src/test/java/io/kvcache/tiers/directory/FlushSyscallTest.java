package io.kvcache.tiers.directory;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.tiers.device.FileDeviceOptions.DirectIo;
import io.kvcache.tiers.device.FileDeviceOptions.IoBackendType;
import io.kvcache.tiers.directory.DiskDirectory.DirectoryOptions;
import io.kvcache.tiers.disk.DiskLogConfig.LogLimits;
import io.kvcache.tiers.disk.DiskLogConfig.ReclaimConfig;
import io.kvcache.tiers.disk.DiskLogFixture;
import io.kvcache.tiers.options.OnIncompatible;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// System calls of a flush, seen from outside: the data is synced before the flush is answered.
///
/// The thread engine is traced, because io_uring hides its operations from a tracer.
@EnabledOnOs(OS.LINUX)
final class FlushSyscallTest {

    private static final String ASKED = "flush asked";
    private static final String ANSWERED = "flush answered";
    private static final int FLUSHES = 5;

    /// A region takes all that is written, so that no trailer is written, for which no flush waits.
    private static final long BYTES = 512L << 20;

    @TempDir
    private Path folder;

    @BeforeAll
    static void requireTracer() throws IOException, InterruptedException {
        boolean works;
        try {
            works = new ProcessBuilder("strace", "-o", "/dev/null", "true")
                            .start()
                            .waitFor()
                    == 0;
        } catch (IOException missing) {
            works = false;
        }
        assumeThat(works).as("strace is there and may trace").isTrue();
    }

    @Test
    void givenFlushes_whenTraced_thenEachIsAnsweredAfterADataSyncThatBeganAfterTheLastWriteHadEnded() throws Exception {
        Path trace = folder.resolve("trace");
        List<String> strace = List.of(
                "strace", "-f", "-s", "64", "-o", trace.toString(), "-e", "trace=fsync,fdatasync,pwrite64,openat");
        try (ChildJvm child = new ChildJvm(strace, Flusher.class, folder.toString())) {
            assertThat(child.line()).isEqualTo("done");
            assertThat(child.finish()).isZero();
        }
        List<Call> calls = Call.parse(Files.readAllLines(trace));
        for (int flush = 0; flush < FLUSHES; flush++) {
            int asked = marker(calls, ASKED, flush);
            int answered = marker(calls, ANSWERED, flush);
            int lastWrite = IntStream.range(0, answered)
                    .filter(i -> calls.get(i).isWriteThatEnded())
                    .filter(i -> !calls.get(i).thread.equals(calls.get(asked).thread))
                    .filter(i -> !isMark(calls, i))
                    .max()
                    .orElse(-1);
            assertThat(lastWrite).as("blocks are written while the flush waits").isGreaterThan(asked);
            assertThat(calls.subList(lastWrite, answered))
                    .as("flush " + flush)
                    .anyMatch(began -> began.isSyncThatBegan()
                            && calls.subList(calls.indexOf(began), answered).stream()
                                    .anyMatch(ended -> ended.isEndOf(began)));
        }
    }

    /// Returns whether a write that ended is of the region's footer. A flush records the durable extent there, so
    /// it writes the footer after the sync and does not wait for a sync of it.
    private static boolean isMark(List<Call> calls, int end) {
        String thread = calls.get(end).thread();
        return IntStream.iterate(end, i -> i >= 0, i -> i - 1)
                .mapToObj(calls::get)
                .filter(call -> call.thread().equals(thread) && call.line().startsWith("pwrite64("))
                .findFirst()
                .orElseThrow()
                .line()
                .contains("KVCTLR1");
    }

    private static int marker(List<Call> calls, String text, int flush) {
        return IntStream.range(0, calls.size())
                .filter(i -> calls.get(i).line().contains("\"" + text + " " + flush + "\""))
                .findFirst()
                .orElseThrow();
    }

    /// A line of a trace; a call that others interrupted is two of them, one where it began and one where it
    /// ended.
    ///
    /// @param number of the line, which tells equal ones apart
    private record Call(int number, String thread, String line) {

        static List<Call> parse(List<String> lines) {
            return IntStream.range(0, lines.size())
                    .mapToObj(i -> new Call(
                            i,
                            lines.get(i).split(" ", 2)[0],
                            lines.get(i).split(" ", 2)[1].strip()))
                    .toList();
        }

        boolean isWriteThatEnded() {
            boolean whole = line.startsWith("pwrite64(") && !line.endsWith("<unfinished ...>");
            return whole || line.startsWith("<... pwrite64 resumed>");
        }

        boolean isSyncThatBegan() {
            return line.startsWith("fdatasync(") || line.startsWith("fsync(");
        }

        boolean isEndOf(Call began) {
            boolean same = equals(began) && line.endsWith("= 0");
            boolean resumed = thread.equals(began.thread)
                    && line.matches("<\\.\\.\\. f(data)?sync resumed>.*= 0")
                    && number > began.number;
            return same || resumed;
        }
    }

    /// Appends and flushes, and says so by writes that a tracer sees.
    static final class Flusher {

        private Flusher() {}

        public static void main(String[] arguments) throws IOException {
            Path folder = Path.of(arguments[0]);
            DirectoryOptions options = new DirectoryOptions(
                    OnIncompatible.REFUSE,
                    DirectIo.AUTO,
                    IoBackendType.THREADS,
                    LogLimits.defaults(),
                    ReclaimConfig.defaults(),
                    true);
            try (FileChannel marker = FileChannel.open(
                            folder.resolve("marker"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                    DiskDirectory directory = DiskDirectory.open(folder.resolve("disk"), BYTES, options);
                    DiskLogFixture log = new DiskLogFixture(directory.device(), directory.config())) {
                for (int flush = 0; flush < FLUSHES; flush++) {
                    mark(marker, ASKED + " " + flush);
                    for (int key = 1; key <= 10; key++) {
                        log.append(flush * 10L + key, 30_000);
                    }
                    log.flush();
                    mark(marker, ANSWERED + " " + flush);
                }
            }
            System.out.println("done");
            System.in.read();
        }

        private static void mark(FileChannel marker, String text) throws IOException {
            marker.write(ByteBuffer.wrap(text.getBytes(US_ASCII)), 0);
        }
    }
}
