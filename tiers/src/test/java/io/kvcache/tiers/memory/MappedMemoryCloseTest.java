package io.kvcache.tiers.memory;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Pause;
import io.kvcache.tiers.options.MemoryOptions;
import io.kvcache.tiers.options.MemoryOptions.Backing;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

@EnabledOnOs(OS.LINUX)
class MappedMemoryCloseTest {

    private static final long BYTES = 1 << 20;

    @Test
    void givenThreadsThatReadAllTheTime_whenClosed_thenEachGetsAnExceptionAndTheProcessLives() throws Exception {
        MappedMemorySource source = new MappedMemorySource(MemoryOptions.defaults());
        for (int round = 0; round < 100; round++) {
            MappedMemory memory = source.reserve("slots", BYTES);
            CountDownLatch reading = new CountDownLatch(2);
            FutureTask<Long> first = start(() -> readUntilClosed(memory.segment(), reading));
            FutureTask<Long> second = start(() -> readUntilClosed(memory.segment(), reading));
            reading.await();
            memory.close();
            assertThat(first.get() + second.get()).isZero();
        }
    }

    @Test
    void givenNativeCallOnTheSegment_whenClosed_thenTheCallIsWaitedFor() throws Exception {
        MappedMemory memory = new MappedMemorySource(MemoryOptions.defaults()).reserve("slots", BYTES);
        BlockedSegment held = BlockedSegment.hold(memory.segment());
        Thread closing = Thread.ofPlatform().daemon().start(memory::close);
        while (closing.getState() != Thread.State.TIMED_WAITING) {
            Pause.briefly();
        }
        assertThat(memory.segment().scope().isAlive()).isTrue();
        held.release();
        assertThat(closing.join(Duration.ofSeconds(30))).isTrue();
        assertThat(memory.segment().scope().isAlive()).isFalse();
    }

    @Test
    @Tag("slow")
    void givenNativeCallThatDoesNotEnd_whenClosed_thenTheMemoryStaysMappedAndItsFileIsReleased() throws Exception {
        MemoryOptions options = MemoryOptions.defaults().withBacking(Backing.MEMFD);
        MappedMemory memory = new MappedMemorySource(options).reserve("slots", BYTES);
        Path file = memory.sharedPath().orElseThrow();
        BlockedSegment held = BlockedSegment.hold(memory.segment());
        memory.close();
        assertThat(memory.segment().scope().isAlive()).isTrue();
        assertThat(MappedMemorySourceTest.isMemfd(file)).isFalse();
        held.release();
    }

    private static long readUntilClosed(MemorySegment segment, CountDownLatch reading) {
        long sum = 0;
        reading.countDown();
        try {
            while (true) {
                for (long offset = 0; offset < segment.byteSize(); offset += Long.BYTES) {
                    sum += segment.get(JAVA_LONG, offset);
                }
            }
        } catch (IllegalStateException closed) {
            return sum;
        }
    }

    private static <T> FutureTask<T> start(Callable<T> work) {
        FutureTask<T> task = new FutureTask<>(work);
        Thread.ofPlatform().daemon().start(task);
        return task;
    }
}
