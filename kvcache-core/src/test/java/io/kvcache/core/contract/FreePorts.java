package io.kvcache.core.contract;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;

/// Ports for servers that a test starts at a port it knows before, or starts again at the same one.
///
/// They lie below those that the system gives to sockets without a wish, so no connection or server of another test
/// gets one meanwhile.
public final class FreePorts {

    private static final int FIRST = 10_000;
    private static final int COUNT = 20_000;

    /// Between two ports of one caller, prime to [#COUNT]: what takes ports next to its own meets none of them.
    private static final int STEP = 1009;

    /// Tests of other processes begin elsewhere.
    private static final AtomicInteger NEXT =
            new AtomicInteger(ThreadLocalRandom.current().nextInt(COUNT));

    private FreePorts() {}

    /// A port of the loopback address that nothing listens at.
    public static int take() {
        return take(1).getFirst();
    }

    /// Different ports of the loopback addresses that nothing listens at.
    public static List<Integer> take(int count) {
        List<Integer> ports = new ArrayList<>();
        for (int tries = 0; ports.size() < count && tries < COUNT; tries++) {
            int port = FIRST + Math.floorMod(NEXT.getAndAdd(STEP), COUNT);
            try (ServerSocket _ = new ServerSocket(port, 1, InetAddress.getByName("0.0.0.0"))) {
                ports.add(port);
            } catch (BindException taken) {
                // the next one
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
        }
        if (ports.size() < count) {
            throw new IllegalStateException("no free ports from " + FIRST + " to " + (FIRST + COUNT - 1));
        }
        return ports;
    }
}
