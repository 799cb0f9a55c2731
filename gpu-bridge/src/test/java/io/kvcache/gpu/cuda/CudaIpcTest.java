package io.kvcache.gpu.cuda;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.contract.TestJvm;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceIpc;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.host.FakeDeviceDriver;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Two JVMs share memory of a device, and each waits for the other.
@Tag("slow")
final class CudaIpcTest {

    static final int BYTES = 300_000;
    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final Arena arena = Arena.ofShared();
    private DeviceDriver driver;
    private DeviceIpc sharing;
    private DeviceStream stream;
    private DeviceSpan slab;
    private DeviceEvent filled;

    @SuppressWarnings("NullAway.Init") // opened before each test
    CudaIpcTest() {}

    @BeforeEach
    void open() {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        driver = fakeCuda.open();
        sharing = driver.ipc();
        stream = driver.openStream(Priority.NORMAL);
        slab = driver.allocate(BYTES);
        filled = sharing.createSharedEvent();
    }

    @AfterEach
    void close() {
        if (!fakeCuda.canHold()) {
            return; // skipped, before anything was opened
        }
        fakeCuda.release();
        filled.close();
        stream.close();
        driver.free(slab);
        driver.close();
        assertThat(fakeCuda.left()).isEmpty();
        arena.close();
    }

    private static Process start(byte[]... tokens) throws IOException {
        List<String> command = new ArrayList<>(List.of(TestJvm.program()));
        command.addAll(TestJvm.FLAGS);
        command.addAll(List.of(
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"),
                IpcTestProcess.class.getName()));
        for (byte[] token : tokens) {
            command.add(HexFormat.of().formatHex(token));
        }
        return new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }

    private static BufferedReader lines(Process peer) {
        return new BufferedReader(new InputStreamReader(peer.getInputStream(), UTF_8));
    }

    private void fill() {
        MemorySegment content = arena.allocate(BYTES);
        new BlockContent(IpcTestProcess.SEEN).fill(content);
        stream.copyToDevice(content, slab.address());
        stream.record(filled);
    }

    @Test
    void givenAnotherJvm_whenItUsesOurMemory_thenEachSeesTheOthersBytesAfterItsEvent() throws Exception {
        fakeCuda.hold();
        fill();
        Process peer = start(sharing.exportToken(slab), sharing.exportToken(filled));
        BufferedReader said = lines(peer);
        assertThat(said.readLine()).isEqualTo("waits");
        fakeCuda.release();
        assertThat(said.readLine()).isEqualTo("looked");
        assertThat(said.readLine()).isEqualTo("saw what was there");
        DeviceEvent written = sharing.openEvent(HexFormat.of().parseHex(said.readLine()));
        MemorySegment back = arena.allocate(BYTES);
        DeviceEvent done = driver.openEvent();
        stream.waitFor(written);
        stream.copyToHost(slab.address(), back);
        stream.record(done);
        assertThat(done.await(LONG_NANOS)).isTrue();
        new BlockContent(IpcTestProcess.WRITTEN).requireEqual(back);
        written.close();
        done.close();
        peer.getOutputStream().write('\n');
        peer.getOutputStream().close();
        assertThat(said.readLine()).isEqualTo("was told to end");
        assertThat(said.readLine()).isNull();
        assertThat(peer.waitFor()).isZero();
    }

    @Test
    void givenAPeerThatDies_whenWeGoOn_thenOurMemoryIsOursAndAllIsGivenBack() throws Exception {
        fill();
        Process peer = start(sharing.exportToken(slab), sharing.exportToken(filled));
        BufferedReader said = lines(peer);
        assertThat(said.readLine()).isIn("waits", "did not wait");
        assertThat(said.readLine()).isEqualTo("looked");
        assertThat(said.readLine()).isEqualTo("saw what was there");
        byte[] token = HexFormat.of().parseHex(said.readLine());
        peer.destroyForcibly().onExit().join();
        refused(() -> sharing.openEvent(token));
        DeviceEvent done = driver.openEvent();
        stream.record(done);
        assertThat(done.await(LONG_NANOS)).isTrue();
        done.close();
    }

    @Test
    void givenMemoryThatIsGone_whenAPeerOpensIt_thenItIsRefused() throws Exception {
        DeviceSpan gone = driver.allocate(BYTES);
        byte[] token = sharing.exportToken(gone);
        driver.free(gone);
        DeviceSpan other = driver.allocate(BYTES);
        Process peer = start(token, sharing.exportToken(filled));
        assertThat(lines(peer).readLine()).startsWith("refused: cuIpcOpenMemHandle: BAD_REQUEST");
        assertThat(peer.waitFor()).isNotNegative();
        driver.free(other);
    }

    @Test
    void givenATokenThatIsOpenedTwice_whenClosedOnce_thenItsMemoryIsStillThere() throws Exception {
        try (IpcExporterProcess peer = new IpcExporterProcess(BYTES)) {
            long before = fakeCuda.resourceCount();
            DeviceSpan theirs = sharing.open(peer.memory());
            assertThat(sharing.open(peer.memory())).isEqualTo(theirs);
            assertThat(driver.resourceCounts().opened()).isEqualTo(2);
            sharing.close(theirs);
            stream.copyWithinDevice(theirs.address(), slab.address(), BYTES);
            MemorySegment back = arena.allocate(BYTES);
            stream.copyToHost(slab.address(), back);
            stream.record(filled);
            assertThat(filled.await(LONG_NANOS)).isTrue();
            assertThat(back.mismatch(arena.allocate(BYTES).fill(IpcExporterProcess.FILLED)))
                    .isEqualTo(-1);
            sharing.close(theirs);
            refused(() -> sharing.close(theirs));
            assertThat(driver.resourceCounts().opened()).isZero();
            assertThat(fakeCuda.resourceCount()).isEqualTo(before);
        }
    }

    @Test
    void givenMemoryThatIsLeftOpen_whenThePeersDriverCloses_thenItSaysSoAndClosesIt() throws Exception {
        Process peer = start(sharing.exportToken(slab));
        BufferedReader said = lines(peer);
        assertThat(said.readLine()).isEqualTo("was told what is left");
        assertThat(said.readLine()).isEqualTo("closed it all the same");
        assertThat(said.readLine()).isNull();
        assertThat(peer.waitFor()).isZero();
    }

    private static void refused(ThrowingCallable call) {
        assertThatExceptionOfType(DeviceException.class)
                .isThrownBy(call)
                .satisfies(refused -> assertThat(refused.error()).isEqualTo(DeviceError.BAD_REQUEST));
    }

    @Test
    void givenTokensThatAreNone_whenOpened_thenRefused() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> sharing.open(new byte[63]))
                .withMessageContaining("63 bytes");
        refused(() -> sharing.open(new byte[64]));
        refused(() -> sharing.open(sharing.exportToken(slab)));
        refused(() -> sharing.openEvent(new byte[64]));
        refused(() -> sharing.openEvent(sharing.exportToken(filled)));
        refused(() -> sharing.exportToken(slab.slice(1, 5)));
        refused(() -> sharing.close(slab));
        DeviceEvent own = driver.openEvent();
        refused(() -> sharing.exportToken(own));
        own.close();
        FakeDeviceDriver host = FakeDeviceDriver.open(1);
        assertThatExceptionOfType(DeviceException.class).isThrownBy(host::ipc);
        host.close();
    }
}
