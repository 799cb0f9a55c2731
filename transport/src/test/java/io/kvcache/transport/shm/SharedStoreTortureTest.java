package io.kvcache.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.shm.SharedMemory.SharedMemoryFiles;
import io.kvcache.transport.shm.SharedStore.OneSidedCounters;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// One process puts and evicts without a pause, two others read its memory without asking: a block that
/// went while it was read is a miss, never a wrong byte.
@EnabledOnOs(OS.LINUX)
@Tag("slow")
final class SharedStoreTortureTest {

    @Test
    @Tag("slow")
    void givenAStoreThatEvictsWithoutAPause_whenReadFromTwoProcesses_thenNoWrongByteIsBelieved() throws Exception {
        try (ShmDirectory folder = ShmDirectory.make();
                TortureProcess writer =
                        TortureProcess.start(List.of("write", folder.path().toString()))) {
            SharedMemoryFiles files = writer.files();
            OneSidedCounters counters = new OneSidedCounters();
            SharedStore store = SharedStore.open(files, counters);
            try (TortureProcess other = TortureProcess.reader(2, files)) {
                TortureProcess.ReadCounts here = TortureProcess.read(store, counters, 1);
                TortureProcess.ReadCounts there = TortureProcess.ReadCounts.parse(other.line());
                assertThat(here.all())
                        .as("hits, misses and torn reads: %s", here)
                        .isTrue();
                assertThat(there.all())
                        .as("hits, misses and torn reads: %s", there)
                        .isTrue();
            } finally {
                store.release();
                writer.kill();
            }
        }
    }

    @Test
    void givenAStoreThatIsKilled_whenReadAfterwards_thenWhatWasMappedStays() throws Exception {
        try (ShmDirectory folder = ShmDirectory.make();
                TortureProcess writer =
                        TortureProcess.start(List.of("write", folder.path().toString()))) {
            OneSidedCounters counters = new OneSidedCounters();
            SharedStore store = SharedStore.open(writer.files(), counters);
            MemorySegment into = MemorySegment.ofArray(new byte[1 << 20]);
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
            while (readAll(store, into) < 10 && System.nanoTime() < end) {
                Thread.onSpinWait();
            }
            writer.kill();
            for (String name : folder.files()) {
                Files.delete(folder.path().resolve(name));
            }
            assertThat(readAll(store, into)).as("blocks").isPositive();
            store.release();
            assertThat(store.retain()).as("unmapped").isFalse();
        }
    }

    /// Reads every block that is here; answers how many.
    private static int readAll(SharedStore store, MemorySegment into) {
        int read = 0;
        for (int seed = 0; seed < TortureProcess.BLOCKS; seed++) {
            if (store.copy(
                                    new SharedStore.ChainQuery(TortureProcess.chain(seed), SharedStore.ANY_NAMESPACE),
                                    0,
                                    1 << 20,
                                    List.of(into))
                            .blocks()
                    > 0) {
                BlockContent.of(TortureProcess.chain(seed).key(0)).requireEqual(into);
                read++;
            }
        }
        return read;
    }
}
