package io.kvcache.server.net;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Pause;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.util.ResourceLeakDetector;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;

/// Has Netty follow every buffer, and fails when one was lost without having been released.
///
/// Netty finds a lost buffer when it is collected. So the check loses a buffer of its own at its end and waits
/// until Netty finds it: then buffers lost before are collected too, and the check has shown that it finds leaks.
/// Another thread hands over the buffers of one collection in any order, so the check does this twice: those of a
/// later collection come after all of an earlier one. Buffers that other tests lost are found in the same way
/// before it begins.
public final class NettyLeakCheck implements AutoCloseable {

    private static final long PATIENCE_NANOS = TimeUnit.MINUTES.toNanos(2);

    private final ResourceLeakDetector.Level before = ResourceLeakDetector.getLevel();
    private final List<String> found = new CopyOnWriteArrayList<>();

    public NettyLeakCheck() {
        ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.PARANOID);
        ByteBufUtil.setLeakListener((type, records) -> found.add(type + ": " + records));
        loseAndFindTwice();
        found.clear();
    }

    private List<String> loseAndFindTwice() {
        return List.of(loseAndFind(), loseAndFind());
    }

    private String loseAndFind() {
        String own = "lost by the watch " + UUID.randomUUID();
        System.out.println("the LEAK that is logged next is the watch's own: " + own);
        lose(own);
        long end = System.nanoTime() + PATIENCE_NANOS;
        while (found.stream().noneMatch(each -> each.contains(own))) {
            assertThat(System.nanoTime()).as("no leak was found").isLessThan(end);
            System.gc();
            Pause.briefly(); // a collection costs far more than the wait for the thread that hands over
            new UnpooledByteBufAllocator(false).directBuffer(1).release(); // which is when Netty looks
        }
        return own;
    }

    @SuppressWarnings("CheckReturnValue") // that is what losing is
    private static void lose(String name) {
        new UnpooledByteBufAllocator(false).directBuffer(1).touch(name);
    }

    /// Returns the leaks so far and goes on checking.
    List<String> leaks() {
        List<String> own = loseAndFindTwice();
        found.removeIf(each -> own.stream().anyMatch(each::contains));
        return List.copyOf(found);
    }

    @Override
    public void close() {
        try {
            assertThat(leaks()).as("buffers that were never released").isEmpty();
        } finally {
            ByteBufUtil.setLeakListener(null);
            ResourceLeakDetector.setLevel(before);
        }
    }
}
