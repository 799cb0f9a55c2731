package io.kvcache.transport.aeron;

import io.aeron.driver.MediaDriver;
import java.io.IOException;
import java.nio.file.Path;

/// A media driver that runs by itself, with the settings of an embedded one: for tests that would start and end
/// one for every store otherwise.
public final class TestDriver implements AutoCloseable {

    private final Path directory;
    private final DriverFolder folder;
    private final MediaDriver driver;

    private TestDriver(Path directory, DriverFolder folder, MediaDriver driver) {
        this.directory = directory;
        this.folder = folder;
        this.driver = driver;
    }

    public static TestDriver start() throws IOException {
        DriverFolder folder = DriverFolder.make();
        AeronAddress address = AeronAddress.parse("aeron:udp?endpoint=127.0.0.1:0");
        MediaDriver driver = MediaDriver.launch(AeronMedia.settings(address, folder.driver()));
        return new TestDriver(folder.driver(), folder, driver);
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
