package io.kvcache.gpu.engine;

import static io.kvcache.gpu.engine.ConditionWait.awaitTrue;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIOException;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.engine.TransferQueue.EngineCopyThreshold;
import io.kvcache.gpu.paging.CopyThreshold;
import io.kvcache.tiers.TieredKvCache;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Engines come to the door of a store, and what they say is not believed.
@Tag("slow")
final class EngineIpcServerTest {

    @TempDir
    private Path folder;

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final Arena arena = Arena.ofShared();
    private TieredKvCache cache;
    private EngineIpcServer door;

    @SuppressWarnings("NullAway.Init") // opened before each test
    EngineIpcServerTest() {}

    @BeforeEach
    void open() {
        cache = TieredKvCache.builder()
                .hostBytes(64 << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .build();
        door = EngineIpcServer.open(
                cache,
                null,
                fakeCuda::open,
                Map.of(TwoLayerPool.NAME, TwoLayerPool.SPACE),
                path(),
                new EngineCopyThreshold(CopyThreshold.ALWAYS_COPY));
    }

    @AfterEach
    void close() {
        fakeCuda.release();
        door.close();
        cache.validate();
        cache.close();
        assertThat(fakeCuda.left()).isEmpty();
        assertThat(path()).doesNotExist();
        arena.close();
    }

    private Path path() {
        return folder.resolve("door");
    }

    private static BlockChain chain() {
        return BlockChain.of(TwoLayerPool.SPACE, TwoLayerPool.tokens(2));
    }

    private void requireStored(int block, int... pages) {
        MemorySegment[] layers = {TwoLayerPool.content(arena, 0), TwoLayerPool.content(arena, 1)};
        try (BlockTable table = cache.acquire(chain())) {
            assertThat(table.readyBlocks()).isEqualTo(2);
            assertThat(table.segment(block).mismatch(TwoLayerPool.block(arena, layers, pages)))
                    .isEqualTo(-1);
        }
    }

    @Test
    void givenAStoreThatFails_whenAnEngineComes_thenItsDriverIsClosed() throws IOException {
        LocalKvCache failing = (LocalKvCache) Proxy.newProxyInstance(
                LocalKvCache.class.getClassLoader(), new Class<?>[] {LocalKvCache.class}, (_, called, _) -> {
                    if (called.getName().equals("register")) {
                        return null;
                    }
                    throw new IllegalStateException("the store does not answer");
                });
        AtomicInteger opened = new AtomicInteger();
        Logger log = Logger.getLogger(EngineIpcServer.class.getName());
        log.setLevel(Level.OFF);
        Path other = folder.resolve("other");
        try (EngineIpcServer second = EngineIpcServer.open(
                        failing, null, () -> counted(opened), Map.of("", TwoLayerPool.SPACE), other);
                EngineClient _ = new EngineClient(other)) {
            awaitTrue(() -> opened.get() == 1 && second.engineCount() == 0);
            assertThat(fakeCuda.left()).isEmpty();
        } finally {
            log.setLevel(null);
        }
    }

    private DeviceDriver counted(AtomicInteger opened) {
        DeviceDriver driver = fakeCuda.open();
        opened.incrementAndGet();
        return driver;
    }

    @Test
    void givenAnEngineInAnotherJvm_whenItStoresAndLoads_thenEachWaitsForTheOthersEvents() throws Exception {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        Process peer = ProcessLauncher.java(EngineTestProcess.class, path().toString());
        try (BufferedReader said = new BufferedReader(new InputStreamReader(peer.getInputStream(), UTF_8))) {
            assertThat(said.readLine()).isEqualTo("two blocks are stored");
            assertThat(said.readLine()).isEqualTo("the store waits for our event");
            assertThat(said.readLine()).isEqualTo("the pages were read");
            assertThat(said.readLine()).isEqualTo("two blocks are sealed");
            requireStored(0, 3, 17);
            requireStored(1, 0, 39);
            fakeCuda.hold();
            tell(peer);
            assertThat(said.readLine()).isEqualTo("told to load");
            assertThat(said.readLine()).isEqualTo("two blocks are loaded");
            assertThat(said.readLine()).isEqualTo("our stream waits for the door's event");
            fakeCuda.release();
            assertThat(said.readLine()).isEqualTo("loaded");
            assertThat(said.readLine()).isEqualTo("the blocks are in their pages");
            assertThat(said.readLine()).isEqualTo("other pages are as they were");
            tell(peer);
            assertThat(said.readLine()).isEqualTo("told to end");
            assertThat(said.readLine()).isNull();
        }
        assertThat(peer.waitFor()).isZero();
        awaitTrue(() -> door.engineCount() == 0);
    }

    /// With its standard library alone, over the same stand-in.
    @Test
    void givenAnEngineInPython_whenItStoresAndLoads_thenItHasItsBytesAndIsRefusedAPageThatIsNone() throws Exception {
        assertThatItStoresAndLoads(engineInPython());
    }

    /// Half of its pool lies in a tensor, somewhere in an allocation of PyTorch's.
    @Test
    void givenAnEngineInPyTorch_whenItStoresAndLoads_thenItHasItsBytesAndIsRefusedAPageThatIsNone() throws Exception {
        assumeThat(isGpuOfPyTorch()).as("python3 with PyTorch and a GPU").isTrue();
        List<String> command = new ArrayList<>(engineInPython());
        command.add("torch");
        assertThatItStoresAndLoads(command);
    }

    private static boolean isGpuOfPyTorch() throws InterruptedException {
        try {
            String question = "import importlib.util as u, sys\n"
                    + "sys.exit(not (u.find_spec('torch') and __import__('torch').cuda.is_available()))";
            return ProcessLauncher.start(List.of("python3", "-c", question)).waitFor() == 0;
        } catch (IOException none) {
            return false;
        }
    }

    private List<String> engineInPython() {
        Path script = Path.of(System.getProperty("kvcache.gpu.engine", "src/test/python/engine.py"))
                .toAbsolutePath();
        return List.of(
                "python3",
                script.toString(),
                path().toString(),
                fakeCuda.library().toString());
    }

    private void assertThatItStoresAndLoads(List<String> command) throws Exception {
        Process peer;
        try {
            peer = ProcessLauncher.start(command);
        } catch (IOException none) {
            assumeThat(false).as("python3").isTrue();
            throw none;
        }
        try (BufferedReader said = new BufferedReader(new InputStreamReader(peer.getInputStream(), UTF_8))) {
            assertThat(said.lines())
                    .containsExactly("greeted", "introduced", "stored", "loaded", "page 40; the pool has 0 to 39");
        }
        assertThat(peer.waitFor()).isZero();
        assertThat(cache.match(chain()).blocks()).isEqualTo(2);
        awaitTrue(() -> door.engineCount() == 0);
    }

    private static void tell(Process peer) throws IOException {
        peer.getOutputStream().write('\n');
        peer.getOutputStream().flush();
    }

    /// Its event counts as reached then, so its pages are copied, though they were never filled.
    @Test
    void givenAnEngineThatIsKilledWhileItStores_whenTheDoorNotices_thenNothingOfItIsStored() throws Exception {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        fakeCuda.hold();
        Process peer = ProcessLauncher.java(EngineTestProcess.class, path().toString());
        try (BufferedReader said = new BufferedReader(new InputStreamReader(peer.getInputStream(), UTF_8))) {
            assertThat(said.readLine()).isEqualTo("two blocks are stored");
            peer.destroyForcibly().onExit().join();
        }
        fakeCuda.release();
        awaitTrue(() -> door.engineCount() == 0);
        assertThat(cache.match(chain()).blocks()).isZero();
    }

    private InProcessEngine engine() throws IOException {
        return new InProcessEngine(fakeCuda, path(), arena);
    }

    private long copies() {
        if (!fakeCuda.canHold()) {
            return 0; // a real driver does not count
        }
        return fakeCuda.calls("cuMemcpyBatchAsync_v2")
                + fakeCuda.calls("cuMemcpyDtoHAsync_v2")
                + fakeCuda.calls("cuMemcpyHtoDAsync_v2");
    }

    @Test
    void givenNumbersThatAreNone_whenBlocksAreAskedFor_thenRefusedAndNothingIsBegun() throws IOException {
        try (InProcessEngine engine = engine()) {
            engine.sendPoolAndChain();
            long before = copies();
            for (int kind : new int[] {EngineCodec.LOAD, EngineCodec.STORE}) {
                engine.expectRefused(kind, EngineClient.blocks(0, 0, 1, -1, 3, 40), "page 40; the pool has 0 to 39");
                engine.expectRefused(kind, EngineClient.blocks(0, 0, 1, -1, -1, 4), "page -1");
                engine.expectRefused(kind, EngineClient.blocks(0, 0, 1, -1, 3, 3), "page 3 comes twice");
                engine.expectRefused(kind, EngineClient.blocks(0, 0, 2, -1, 3, 4, 5, 3), "page 3 comes twice");
                engine.expectRefused(kind, EngineClient.blocks(0, 0, 2, -1, 3, 4, 5), "pages of 2 blocks");
                engine.expectRefused(kind, EngineClient.blocks(0, 1, 2, -1, 3, 4, 5, 6), "chain 0 has 2");
                engine.expectRefused(kind, EngineClient.blocks(0, -1, 1, -1, 3, 4), "chain 0 has 2");
                engine.expectRefused(kind, EngineClient.blocks(0, 0, Integer.MAX_VALUE, -1, 3, 4), "chain 0 has 2");
                engine.expectRefused(kind, EngineClient.blocks(9, 0, 1, -1, 3, 4), "chain 9 was not told");
                engine.expectRefused(kind, EngineClient.blocks(0, 0, 1, 0, 3, 4), "event: 0");
            }
            engine.expectRefused(EngineCodec.SEAL, EngineClient.body(4).putInt(0), "store 0");
            engine.expectRefused(EngineCodec.CHAIN, EngineClient.chain(0, 1, 0), "pool: 1");
            engine.expectRefused(EngineCodec.CHAIN, EngineClient.chain(0, 0, 3), "blocks kept");
            engine.expectRefused(
                    EngineCodec.CHAIN,
                    EngineClient.body(16).putLong(0).putInt(0).putInt(1 << 30),
                    "numbers");
            engine.expectRefused(EngineCodec.STORE, EngineClient.body(3), "cut short");
            engine.expectRefused(77, EngineClient.body(0), "kind 77");
            assertThat(copies()).isEqualTo(before);
            assertThat(cache.match(chain()).blocks()).isZero();
        }
    }

    @Test
    void givenMemoryThatIsNone_whenToldOf_thenRefused() throws IOException {
        try (InProcessEngine engine = engine()) {
            EngineClient client = engine.client();
            engine.expectRefused(EngineCodec.REGION, EngineClient.body(4).putInt(0), "HELLO");
            engine.expectRefused(
                    EngineCodec.HELLO, EngineClient.body(20).putInt(2).put(new byte[16]), "version");
            engine.expectRefused(
                    EngineCodec.HELLO, EngineClient.body(20).putInt(1).put(new byte[16]), "this door ");
            engine.sendPoolAndChain();
            engine.expectRefused(
                    EngineCodec.REGION, EngineClient.body(68).putInt(0).put(new byte[64]), "cuIpcOpenMemHandle");
            engine.expectRefused(EngineCodec.EVENT, EngineClient.body(64).put(new byte[64]), "cuIpcOpenEventHandle");
            engine.expectRefused(
                    EngineCodec.REGION, EngineClient.body(12).putInt(1).putLong(2 << 20), "descriptors");
            engine.expectRefused(
                    EngineCodec.REGION, EngineClient.body(12).putInt(2).putLong(2 << 20), "how memory is named");
            long twice = 2 * engine.pages().bytes();
            assertThatExceptionOfType(EngineClient.Refused.class)
                    .isThrownBy(() -> client.region(engine.descriptor(), twice))
                    .withMessageContaining("cuMemMap");
            assertThatExceptionOfType(EngineClient.Refused.class)
                    .isThrownBy(() -> client.region(engine.descriptor(), 4096))
                    .withMessageContaining("4096");
            assertThatExceptionOfType(EngineClient.Refused.class)
                    .isThrownBy(() -> client.region(0, 2 << 20)) // whatever standard input is
                    .withMessageContaining("cuMemImportFromShareableHandle");
            engine.expectRefused(EngineCodec.POOL, TwoLayerPool.encodeLayers(0, 2), "region: 2");
            engine.expectRefused(
                    EngineCodec.POOL, wrongPool(engine.pages().bytes(), 2048), "region 0, which has 2097152");
            engine.expectRefused(EngineCodec.POOL, wrongPool(TwoLayerPool.LAYER_BYTES, 1024), "blocks of 8192 bytes");
            engine.expectRefused(
                    EngineCodec.POOL, wrongPool(TwoLayerPool.LAYER_BYTES, Long.MAX_VALUE / 2), "pieceBytes and up");
        }
    }

    /// A stale token, too many peers, a forbidden call, anything, the token of a device that is not here.
    @ParameterizedTest
    @ValueSource(ints = {205, 711, 304, 999, 101})
    void givenATokenThatTheDriverRefuses_whenTold_thenTheSessionGoesOn(int answer) throws IOException {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose calls can be made to fail")
                .isTrue();
        try (InProcessEngine engine = engine()) {
            engine.sendPoolAndChain();
            fakeCuda.failCall("cuIpcOpenMemHandle_v2", 1, answer);
            engine.expectRefused(
                    EngineCodec.REGION, EngineClient.body(68).putInt(0).put(new byte[64]), "cuIpcOpenMemHandle");
            fakeCuda.failCall("cuIpcOpenEventHandle", 1, answer);
            engine.expectRefused(EngineCodec.EVENT, EngineClient.body(64).put(new byte[64]), "cuIpcOpenEventHandle");
            engine.client().ask(EngineCodec.CHAIN, EngineClient.chain(1, 0, 0, TwoLayerPool.tokens(1)));
        }
    }

    private static ByteBuffer wrongPool(long layerBytes, long pieceBytes) {
        ByteBuffer body = TwoLayerPool.encodeLayers(0, 1);
        int behindName = 4 + TwoLayerPool.NAME.length() + 4 * 4;
        body.putLong(behindName + 16, pieceBytes);
        return body.putLong(behindName + 24 + 16, layerBytes);
    }

    @Test
    void givenAStoreThatIsNotSealed_whenTheEngineGoes_thenItsBlocksAreNotFound() throws IOException {
        try (InProcessEngine engine = engine()) {
            engine.sendPoolAndChain();
            engine.fill();
            ByteBuffer stored = engine.client().ask(EngineCodec.STORE, EngineClient.blocks(0, 0, 2, -1, 3, 17, 0, 39));
            assertThat(stored.getLong()).isEqualTo(2);
            assertThat(cache.match(chain()).blocks()).isZero();
        }
        awaitTrue(() -> door.engineCount() == 0);
        assertThat(cache.match(chain()).blocks()).isZero();
    }

    @Test
    void givenAnEngineWhoseCopiesAreHeld_whenItGoes_thenItsSlotsAreKeptUntilTheDeviceIsDone() throws IOException {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        InProcessEngine engine = engine();
        engine.sendPoolAndChain();
        engine.fill();
        fakeCuda.hold();
        engine.client().ask(EngineCodec.STORE, EngineClient.blocks(0, 0, 2, -1, 3, 17, 0, 39));
        engine.client().close();
        assertThat(door.engineCount()).as("let go before the device is").isEqualTo(1);
        fakeCuda.release();
        awaitTrue(() -> door.engineCount() == 0);
        assertThat(cache.match(chain()).blocks()).isZero();
        engine.close();
    }

    @Test
    void givenWhatIsStored_whenItIsStoredAgain_thenNothingIsCopied() throws IOException {
        try (InProcessEngine engine = engine()) {
            engine.sendPoolAndChain();
            engine.fill();
            ByteBuffer stored = engine.client().ask(EngineCodec.STORE, EngineClient.blocks(0, 0, 2, -1, 3, 17, 0, 39));
            assertThat(stored.getLong()).isEqualTo(2);
            assertThat(engine.client().seal(stored.getLong())).isEqualTo(2);
            long before = copies();
            ByteBuffer again = engine.client().ask(EngineCodec.STORE, EngineClient.blocks(0, 0, 2, -1, 1, 2, 5, 6));
            assertThat(again.getLong()).isEqualTo(2);
            long store = again.getLong();
            assertThat(engine.client().seal(store)).isZero();
            engine.expectRefused(EngineCodec.SEAL, EngineClient.body(4).putInt((int) store), "is not one that waits");
            assertThat(copies()).isEqualTo(before);
            assertThat(engine.client()
                            .ask(EngineCodec.CHAIN, EngineClient.chain(0, 0, 0, TwoLayerPool.tokens(3)))
                            .getLong(EngineCodec.HEADER_BYTES + 8))
                    .as("blocks here")
                    .isEqualTo(2);
        }
    }

    @Test
    void givenMessagesThatAreTooLargeOrNone_whenSent_thenTheEngineIsLetGoAndOthersAreServed() throws IOException {
        try (UnixSocket raw = UnixSocket.connect(path())) {
            assertThatIOException()
                    .isThrownBy(() -> raw.send(ByteBuffer.allocate(UnixSocket.MAX_MESSAGE_BYTES + 1), -1));
            raw.send(ByteBuffer.allocate(3), -1);
            awaitTrue(() -> ended(raw));
        }
        try (EngineClient other = new EngineClient(path())) {
            assertThatExceptionOfType(EngineClient.Refused.class)
                    .isThrownBy(() -> other.hello("00".repeat(16)))
                    .withMessageContaining("this door ");
        }
    }

    private static boolean ended(UnixSocket socket) {
        try {
            return socket.awaitReadable(10) && socket.receive() == null;
        } catch (IOException broken) {
            return true;
        }
    }

    @Test
    void givenAPathThatIsTaken_whenADoorIsOpened_thenItSaysSo() throws IOException {
        Path taken = Files.createFile(folder.resolve("taken"));
        assertThatExceptionOfType(java.io.UncheckedIOException.class)
                .isThrownBy(() -> EngineIpcServer.open(cache, null, fakeCuda::open, Map.of(), taken))
                .withMessageContaining(taken.toString());
        Files.delete(taken);
        assertThat(List.of(folder.toFile().list())).containsExactly("door");
    }
}
