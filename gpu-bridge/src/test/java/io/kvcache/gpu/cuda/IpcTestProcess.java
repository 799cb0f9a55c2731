package io.kvcache.gpu.cuda;

import io.kvcache.core.check.BlockContent;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceIpc;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HexFormat;
import java.util.concurrent.TimeUnit;

/// The other process of [CudaIpcTest]: waits for an event of the test's, looks at the memory, writes
/// there, and says by an event of its own when that is done. It speaks by lines.
final class IpcTestProcess {

    static final long SEEN = 31;
    static final long WRITTEN = 32;

    private IpcTestProcess() {}

    /// Token of memory, token of an event; without the second it only opens the first, and leaves it.
    public static void main(String... tokens) throws Exception {
        FakeCuda fakeCuda = FakeCuda.reset();
        DeviceDriver driver = fakeCuda.open();
        DeviceIpc sharing = driver.ipc();
        if (tokens.length == 1) {
            leave(fakeCuda, HexFormat.of().parseHex(tokens[0]));
            driver.close();
            return;
        }
        try (Arena arena = Arena.ofShared()) {
            DeviceSpan memory = sharing.open(HexFormat.of().parseHex(tokens[0]));
            DeviceEvent filled = sharing.openEvent(HexFormat.of().parseHex(tokens[1]));
            DeviceEvent written = sharing.createSharedEvent();
            DeviceEvent looked = driver.openEvent();
            DeviceStream stream = driver.openStream(Priority.NORMAL);
            MemorySegment seen = arena.allocate(CudaIpcTest.BYTES);
            MemorySegment content = arena.allocate(CudaIpcTest.BYTES);
            new BlockContent(WRITTEN).fill(content);
            stream.waitFor(filled);
            stream.copyToHost(memory.address(), seen);
            stream.record(looked);
            System.out.println(looked.await(TimeUnit.MILLISECONDS.toNanos(50)) ? "did not wait" : "waits");
            say(looked.await(TimeUnit.SECONDS.toNanos(30)), "looked");
            say(new BlockContent(SEEN).mismatch(seen) == -1, "saw what was there");
            stream.copyToDevice(content, memory.address());
            stream.record(written);
            System.out.println(HexFormat.of().formatHex(sharing.exportToken(written)));
            int ignored = System.in.read();
            say(ignored >= 0, "was told to end");
            filled.close();
            written.close();
            looked.close();
            stream.close();
            sharing.close(memory);
            driver.close();
        } catch (DeviceException refused) {
            System.out.println("refused: " + refused.getMessage());
        }
    }

    /// Another driver opens the memory, and is closed with it while this one keeps the context.
    private static void leave(FakeCuda fakeCuda, byte[] token) {
        String before = fakeCuda.left();
        DeviceDriver other = fakeCuda.open();
        other.ipc().open(token);
        try {
            other.close();
        } catch (IllegalStateException left) {
            say(String.valueOf(left.getMessage()).contains("opened=1"), "was told what is left");
        }
        say(fakeCuda.left().equals(before), "closed it all the same");
    }

    private static void say(boolean good, String what) {
        System.out.println((good ? "" : "not: ") + what);
    }
}
