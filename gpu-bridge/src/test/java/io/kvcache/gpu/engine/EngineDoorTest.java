package io.kvcache.gpu.engine;

import static io.kvcache.gpu.engine.Awaited.until;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIOException;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceDriver;
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
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Engines come to the door of a store, and what they say is not believed.
final class EngineDoorTest {

    @TempDir
    private Path folder;

    private final FakeCuda standIn = FakeCuda.reset();
    private final Arena arena = Arena.ofShared();
    private TieredKvCache cache;
    private EngineDoor door;

    @SuppressWarnings("NullAway.Init") // opened before each test
    EngineDoorTest() {}

    @BeforeEach
    void open() {
        cache = TieredKvCache.builder()
                .hostBytes(64 << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .build();
        door = EngineDoor.open(
                cache,
                standIn::open,
                Map.of(PoolOfTwo.NAME, PoolOfTwo.SPACE),
                path(),
                new DoorThreshold(CopyThreshold.COPIES));
    }

    @AfterEach
    void close() {
        standIn.release();
        door.close();
        cache.validate();
        cache.close();
        assertThat(standIn.left()).isEmpty();
        assertThat(path()).doesNotExist();
        arena.close();
    }

    private Path path() {
        return folder.resolve("door");
    }

    private static BlockChain chain() {
        return BlockChain.of(PoolOfTwo.SPACE, PoolOfTwo.tokens(2));
    }

    private void requireStored(int block, int... pages) {
        MemorySegment[] layers = {PoolOfTwo.content(arena, 0), PoolOfTwo.content(arena, 1)};
        try (BlockTable table = cache.acquire(chain())) {
            assertThat(table.readyBlocks()).isEqualTo(2);
            assertThat(table.segment(block).mismatch(PoolOfTwo.block(arena, layers, pages)))
                    .isEqualTo(-1);
        }
    }

    @Test
    void givenAStoreThatFails_whenAnEngineComes_thenItsDriverIsClosed() throws IOException {
        KvCache failing = (KvCache) Proxy.newProxyInstance(
                KvCache.class.getClassLoader(), new Class<?>[] {KvCache.class}, (_, called, _) -> {
                    if (called.getName().equals("register")) {
                        return null;
                    }
                    throw new IllegalStateException("the store does not answer");
                });
        AtomicInteger opened = new AtomicInteger();
        Logger log = Logger.getLogger(EngineDoor.class.getName());
        log.setLevel(Level.OFF);
        Path other = folder.resolve("other");
        try (EngineDoor second = EngineDoor.open(failing, () -> counted(opened), Map.of("", PoolOfTwo.SPACE), other);
                EngineClient _ = new EngineClient(other)) {
            until(() -> opened.get() == 1 && second.engines() == 0);
            assertThat(standIn.left()).isEmpty();
        } finally {
            log.setLevel(null);
        }
    }

    private DeviceDriver counted(AtomicInteger opened) {
        DeviceDriver driver = standIn.open();
        opened.incrementAndGet();
        return driver;
    }

    @Test
    void givenAnEngineInAnotherJvm_whenItStoresAndLoads_thenEachWaitsForTheOthersEvents() throws Exception {
        assumeThat(standIn.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        Process peer = EngineProcess.java(EnginePeer.class, path().toString());
        try (BufferedReader said = new BufferedReader(new InputStreamReader(peer.getInputStream(), UTF_8))) {
            assertThat(said.readLine()).isEqualTo("two blocks are stored");
            assertThat(said.readLine()).isEqualTo("the store waits for our event");
            assertThat(said.readLine()).isEqualTo("the pages were read");
            assertThat(said.readLine()).isEqualTo("two blocks are sealed");
            requireStored(0, 3, 17);
            requireStored(1, 0, 39);
            standIn.hold();
            tell(peer);
            assertThat(said.readLine()).isEqualTo("told to load");
            assertThat(said.readLine()).isEqualTo("two blocks are loaded");
            assertThat(said.readLine()).isEqualTo("our stream waits for the door's event");
            standIn.release();
            assertThat(said.readLine()).isEqualTo("loaded");
            assertThat(said.readLine()).isEqualTo("the blocks are in their pages");
            assertThat(said.readLine()).isEqualTo("other pages are as they were");
            tell(peer);
            assertThat(said.readLine()).isEqualTo("told to end");
            assertThat(said.readLine()).isNull();
        }
        assertThat(peer.waitFor()).isZero();
        until(() -> door.engines() == 0);
    }

    /// With its standard library alone, over the same stand-in.
    @Test
    void givenAnEngineInPython_whenItStoresAndLoads_thenItHasItsBytesAndIsRefusedAPageThatIsNone() throws Exception {
        Path script = Path.of(System.getProperty("kvcache.gpu.engine", "src/test/python/engine.py"))
                .toAbsolutePath();
        List<String> command = List.of(
                "python3",
                script.toString(),
                path().toString(),
                standIn.library().toString());
        Process peer;
        try {
            peer = EngineProcess.start(command);
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
        until(() -> door.engines() == 0);
    }

    private static void tell(Process peer) throws IOException {
        peer.getOutputStream().write('\n');
        peer.getOutputStream().flush();
    }

    /// Its event counts as reached then, so its pages are copied, though they were never filled.
    @Test
    void givenAnEngineThatIsKilledWhileItStores_whenTheDoorNotices_thenNothingOfItIsStored() throws Exception {
        assumeThat(standIn.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        standIn.hold();
        Process peer = EngineProcess.java(EnginePeer.class, path().toString());
        try (BufferedReader said = new BufferedReader(new InputStreamReader(peer.getInputStream(), UTF_8))) {
            assertThat(said.readLine()).isEqualTo("two blocks are stored");
            peer.destroyForcibly().onExit().join();
        }
        standIn.release();
        until(() -> door.engines() == 0);
        assertThat(cache.match(chain()).blocks()).isZero();
    }

    private EngineHere engine() throws IOException {
        return new EngineHere(standIn, path(), arena);
    }

    private long copies() {
        if (!standIn.canHold()) {
            return 0; // a real driver does not count
        }
        return standIn.calls("cuMemcpyBatchAsync_v2")
                + standIn.calls("cuMemcpyDtoHAsync_v2")
                + standIn.calls("cuMemcpyHtoDAsync_v2");
    }

    @Test
    void givenNumbersThatAreNone_whenBlocksAreAskedFor_thenRefusedAndNothingIsBegun() throws IOException {
        try (EngineHere engine = engine()) {
            engine.introduce();
            long before = copies();
            for (int kind : new int[] {Wire.LOAD, Wire.STORE}) {
                engine.refused(kind, EngineClient.blocks(0, 0, 1, -1, 3, 40), "page 40; the pool has 0 to 39");
                engine.refused(kind, EngineClient.blocks(0, 0, 1, -1, -1, 4), "page -1");
                engine.refused(kind, EngineClient.blocks(0, 0, 1, -1, 3, 3), "page 3 comes twice");
                engine.refused(kind, EngineClient.blocks(0, 0, 2, -1, 3, 4, 5, 3), "page 3 comes twice");
                engine.refused(kind, EngineClient.blocks(0, 0, 2, -1, 3, 4, 5), "pages of 2 blocks");
                engine.refused(kind, EngineClient.blocks(0, 1, 2, -1, 3, 4, 5, 6), "chain 0 has 2");
                engine.refused(kind, EngineClient.blocks(0, -1, 1, -1, 3, 4), "chain 0 has 2");
                engine.refused(kind, EngineClient.blocks(0, 0, Integer.MAX_VALUE, -1, 3, 4), "chain 0 has 2");
                engine.refused(kind, EngineClient.blocks(9, 0, 1, -1, 3, 4), "chain 9 was not told");
                engine.refused(kind, EngineClient.blocks(0, 0, 1, 0, 3, 4), "event: 0");
            }
            engine.refused(Wire.SEAL, EngineClient.body(4).putInt(0), "store 0");
            engine.refused(Wire.CHAIN, EngineClient.chain(0, 1, 0), "pool: 1");
            engine.refused(Wire.CHAIN, EngineClient.chain(0, 0, 3), "blocks kept");
            engine.refused(
                    Wire.CHAIN, EngineClient.body(16).putLong(0).putInt(0).putInt(1 << 30), "numbers");
            engine.refused(Wire.STORE, EngineClient.body(3), "cut short");
            engine.refused(77, EngineClient.body(0), "kind 77");
            assertThat(copies()).isEqualTo(before);
            assertThat(cache.match(chain()).blocks()).isZero();
        }
    }

    @Test
    void givenMemoryThatIsNone_whenToldOf_thenRefused() throws IOException {
        try (EngineHere engine = engine()) {
            EngineClient client = engine.client();
            engine.refused(Wire.REGION, EngineClient.body(4).putInt(0), "HELLO");
            engine.refused(Wire.HELLO, EngineClient.body(20).putInt(2).put(new byte[16]), "version");
            engine.refused(Wire.HELLO, EngineClient.body(20).putInt(1).put(new byte[16]), "this door ");
            engine.introduce();
            engine.refused(Wire.REGION, EngineClient.body(68).putInt(0).put(new byte[64]), "cuIpcOpenMemHandle");
            engine.refused(Wire.EVENT, EngineClient.body(64).put(new byte[64]), "cuIpcOpenEventHandle");
            engine.refused(Wire.REGION, EngineClient.body(12).putInt(1).putLong(2 << 20), "descriptors");
            engine.refused(Wire.REGION, EngineClient.body(12).putInt(2).putLong(2 << 20), "how memory is told of");
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
            engine.refused(Wire.POOL, PoolOfTwo.described(0, 2), "region: 2");
            engine.refused(Wire.POOL, wrongPool(engine.pages().bytes(), 2048), "region 0, which has 2097152");
            engine.refused(Wire.POOL, wrongPool(PoolOfTwo.LAYER_BYTES, 1024), "blocks of 8192 bytes");
            engine.refused(Wire.POOL, wrongPool(PoolOfTwo.LAYER_BYTES, Long.MAX_VALUE / 2), "pieceBytes and up");
        }
    }

    /// A stale token, too many peers, a forbidden call, anything, the token of a device that is not here.
    @ParameterizedTest
    @ValueSource(ints = {205, 711, 304, 999, 101})
    void givenATokenThatTheDriverRefuses_whenTold_thenTheSessionGoesOn(int answer) throws IOException {
        assumeThat(standIn.canHold())
                .as("a driver whose calls can be made to fail")
                .isTrue();
        try (EngineHere engine = engine()) {
            engine.introduce();
            standIn.failCall("cuIpcOpenMemHandle_v2", 1, answer);
            engine.refused(Wire.REGION, EngineClient.body(68).putInt(0).put(new byte[64]), "cuIpcOpenMemHandle");
            standIn.failCall("cuIpcOpenEventHandle", 1, answer);
            engine.refused(Wire.EVENT, EngineClient.body(64).put(new byte[64]), "cuIpcOpenEventHandle");
            engine.client().ask(Wire.CHAIN, EngineClient.chain(1, 0, 0, PoolOfTwo.tokens(1)));
        }
    }

    private static ByteBuffer wrongPool(long layerBytes, long pieceBytes) {
        ByteBuffer body = PoolOfTwo.described(0, 1);
        int behindName = 4 + PoolOfTwo.NAME.length() + 4 * 4;
        body.putLong(behindName + 16, pieceBytes);
        return body.putLong(behindName + 24 + 16, layerBytes);
    }

    @Test
    void givenAStoreThatIsNotSealed_whenTheEngineGoes_thenItsBlocksAreNotFound() throws IOException {
        try (EngineHere engine = engine()) {
            engine.introduce();
            engine.fill();
            ByteBuffer stored = engine.client().ask(Wire.STORE, EngineClient.blocks(0, 0, 2, -1, 3, 17, 0, 39));
            assertThat(stored.getLong()).isEqualTo(2);
            assertThat(cache.match(chain()).blocks()).isZero();
        }
        until(() -> door.engines() == 0);
        assertThat(cache.match(chain()).blocks()).isZero();
    }

    @Test
    void givenAnEngineWhoseCopiesAreHeld_whenItGoes_thenItsSlotsAreKeptUntilTheDeviceIsDone() throws IOException {
        assumeThat(standIn.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        EngineHere engine = engine();
        engine.introduce();
        engine.fill();
        standIn.hold();
        engine.client().ask(Wire.STORE, EngineClient.blocks(0, 0, 2, -1, 3, 17, 0, 39));
        engine.client().close();
        assertThat(door.engines()).as("let go before the device is").isEqualTo(1);
        standIn.release();
        until(() -> door.engines() == 0);
        assertThat(cache.match(chain()).blocks()).isZero();
        engine.close();
    }

    @Test
    void givenWhatIsStored_whenItIsStoredAgain_thenNothingIsCopied() throws IOException {
        try (EngineHere engine = engine()) {
            engine.introduce();
            engine.fill();
            ByteBuffer stored = engine.client().ask(Wire.STORE, EngineClient.blocks(0, 0, 2, -1, 3, 17, 0, 39));
            assertThat(stored.getLong()).isEqualTo(2);
            assertThat(engine.client().seal(stored.getLong())).isEqualTo(2);
            long before = copies();
            ByteBuffer again = engine.client().ask(Wire.STORE, EngineClient.blocks(0, 0, 2, -1, 1, 2, 5, 6));
            assertThat(again.getLong()).isEqualTo(2);
            long store = again.getLong();
            assertThat(engine.client().seal(store)).isZero();
            engine.refused(Wire.SEAL, EngineClient.body(4).putInt((int) store), "is not one that waits");
            assertThat(copies()).isEqualTo(before);
            assertThat(engine.client()
                            .ask(Wire.CHAIN, EngineClient.chain(0, 0, 0, PoolOfTwo.tokens(3)))
                            .getLong(Wire.HEADER_BYTES + 8))
                    .as("blocks here")
                    .isEqualTo(2);
        }
    }

    @Test
    void givenMessagesThatAreTooLargeOrNone_whenSent_thenTheEngineIsLetGoAndOthersAreServed() throws IOException {
        try (UnixSocket raw = UnixSocket.connect(path())) {
            assertThatIOException().isThrownBy(() -> raw.send(ByteBuffer.allocate(UnixSocket.MOST_BYTES + 1), -1));
            raw.send(ByteBuffer.allocate(3), -1);
            until(() -> ended(raw));
        }
        try (EngineClient other = new EngineClient(path())) {
            assertThatExceptionOfType(EngineClient.Refused.class)
                    .isThrownBy(() -> other.hello("00".repeat(16)))
                    .withMessageContaining("this door ");
        }
    }

    private static boolean ended(UnixSocket socket) {
        try {
            return socket.readable(10) && socket.receive() == null;
        } catch (IOException broken) {
            return true;
        }
    }

    @Test
    void givenAPathThatIsTaken_whenADoorIsOpened_thenItSaysSo() throws IOException {
        Path taken = Files.createFile(folder.resolve("taken"));
        assertThatExceptionOfType(java.io.UncheckedIOException.class)
                .isThrownBy(() -> EngineDoor.open(cache, standIn::open, Map.of(), taken))
                .withMessageContaining(taken.toString());
        Files.delete(taken);
        assertThat(List.of(folder.toFile().list())).containsExactly("door");
    }
}
