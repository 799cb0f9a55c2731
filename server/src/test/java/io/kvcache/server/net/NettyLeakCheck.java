package io.kvcache.server.net;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.util.ResourceLeakDetector;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;

/// Has Netty follow every buffer, and fails when one was lost without having been released.
///
/// What is lost is found when it is collected. So the watch loses a buffer of its own at its end, and waits until that
/// is found: then what was lost before is collected too, and the watch has shown that it can find something. Those of
/// one collection are handed over one by one, in any order and by another thread, so it does so twice: what is handed
/// over for a later collection comes after all of an earlier one. What other tests have lost is found, in the same way,
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
            new UnpooledByteBufAllocator(false).directBuffer(1).release(); // which is when Netty looks
        }
        return own;
    }

    @SuppressWarnings("CheckReturnValue") // that is what losing is
    private static void lose(String name) {
        new UnpooledByteBufAllocator(false).directBuffer(1).touch(name);
    }

    /// What was lost so far; ends nothing.
    List<String> leaks() {
        List<String> own = loseAndFindTwice();
        found.removeIf(each -> own.stream().anyMatch(each::contains));
        return List.copyOf(found);
    }

    @Override
    public void close() {
        try {
            assertThat(leaks()).as("buffers that nobody released").isEmpty();
        } finally {
            ByteBufUtil.setLeakListener(null);
            ResourceLeakDetector.setLevel(before);
        }
    }
}
