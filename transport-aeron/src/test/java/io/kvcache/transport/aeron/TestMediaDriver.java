package io.kvcache.transport.aeron;

import io.aeron.driver.MediaDriver;
import io.aeron.driver.ext.DebugReceiveChannelEndpoint;
import io.aeron.driver.ext.DebugSendChannelEndpoint;
import io.aeron.driver.ext.LossGenerator;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/// A media driver that runs by itself, with the settings of an embedded one: for tests that would start and end
/// one for every store otherwise.
public final class TestMediaDriver implements AutoCloseable {

    private final Path directory;
    private final DriverDirectory folder;
    private final MediaDriver driver;
    private final AtomicLong lost;

    private TestMediaDriver(Path directory, DriverDirectory folder, MediaDriver driver, AtomicLong lost) {
        this.lost = lost;
        this.directory = directory;
        this.folder = folder;
        this.driver = driver;
    }

    public static TestMediaDriver start() throws IOException {
        return start(context -> {}, new AtomicLong());
    }

    /// One that loses messages of both directions, data and what is said of it, by lot.
    ///
    /// @param share of all that come in, 0 to 1
    public static TestMediaDriver losing(double share, long seed) throws IOException {
        AtomicLong lost = new AtomicLong();
        return start(
                context -> context.receiveChannelEndpointSupplier(
                                (channel, dispatcher, status, of) -> new DebugReceiveChannelEndpoint(
                                        channel, dispatcher, status, of, lot(share, seed, lost), lot(0, 0, lost)))
                        .sendChannelEndpointSupplier((channel, status, of) -> new DebugSendChannelEndpoint(
                                channel, status, of, lot(0, 0, lost), lot(share, ~seed, lost))),
                lost);
    }

    private static LossGenerator lot(double share, long seed, AtomicLong lost) {
        Random random = new Random(seed);
        return (address, buffer, bytes) -> {
            boolean loses = random.nextDouble() < share;
            if (loses) {
                lost.incrementAndGet();
            }
            return loses;
        };
    }

    private static TestMediaDriver start(Consumer<MediaDriver.Context> more, AtomicLong lost) throws IOException {
        DriverDirectory folder = DriverDirectory.createTemporary();
        AeronAddress address = AeronAddress.parse("aeron:udp?endpoint=127.0.0.1:0");
        MediaDriver.Context context = AeronDriver.driverContext(address, folder.driver());
        more.accept(context);
        return new TestMediaDriver(folder.driver(), folder, MediaDriver.launch(context), lost);
    }

    /// Messages that were lost so far.
    public long lostCount() {
        return lost.get();
    }

    /// What addresses name it by.
    public String parameter() {
        return "driver=" + directory;
    }

    @Override
    public void close() throws IOException {
        driver.close();
        folder.close();
    }
}
