package io.kvcache.gpu.engine;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.DeviceSupport.Resized;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceIpc;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.ResourceScope;
import io.kvcache.gpu.engine.LayeredLoads.PoolSteps;
import io.kvcache.gpu.engine.LayeredLoads.Progress;
import io.kvcache.gpu.engine.ServedTier.EngineRoom;
import io.kvcache.gpu.engine.TransferQueue.EngineCopyThreshold;
import io.kvcache.gpu.engine.TransferQueue.StoredBlock;
import io.kvcache.gpu.paging.PagedLayout;
import io.kvcache.gpu.tier.CudaTier;
import io.kvcache.gpu.tier.DeviceStaging;
import io.kvcache.gpu.tier.DeviceStaging.StagedBlock;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Session of one engine: its requests and their copies.
///
/// **Threads.** One, which also has the driver.
final class EngineSession {

    private static final Logger LOG = System.getLogger(EngineSession.class.getName());
    private static final int MAX_POOLS = 64;
    private static final int MAX_CHAINS = 1024;
    private static final int MAX_CHAIN_BLOCKS = 1 << 20;
    private static final int MAX_WAIT_MILLIS = 10_000;
    private static final int MAX_LAYERS = 1024;

    /// As many tokens as fit a message.
    private static final int MAX_STEPS = 512;

    private static final long MAX_EVENT_NANOS = TimeUnit.SECONDS.toNanos(10);

    private final UnixSocket socket;
    private final LocalKvCache cache;
    private final @Nullable CudaTier tier;
    private final @Nullable EngineRoom room;
    private final Function<String, @Nullable Namespace> namespaces;
    private final DeviceDriver driver;
    private final EngineMappings memory;
    private final ResourceScope resources = new ResourceScope();
    private final TransferQueue transferQueue;
    private final LayeredLoads layeredLoads;
    private final IdentityHashMap<EnginePagePool, PoolSteps> steps = new IdentityHashMap<>();
    private final List<EnginePagePool> pools = new ArrayList<>();
    private final Map<Integer, EngineChain> chains = new HashMap<>();
    private boolean helloReceived;
    private @Nullable RoomRequest roomRequest;

    private record EngineChain(EnginePagePool pool, BlockChain chain) {}

    /// A request for room, which a thread of its own waits for: copies of this session may hold what is to go.
    private record RoomRequest(int number, CompletableFuture<Resized> resized) {}

    /// @param tier in the memory of the driver's device, or null when the store has none there
    /// @param driver of this session alone; the caller's, to be closed after this
    EngineSession(
            UnixSocket socket,
            LocalKvCache cache,
            @Nullable ServedTier tier,
            Function<String, @Nullable Namespace> namespaces,
            DeviceDriver driver,
            EngineCopyThreshold threshold) {
        this.socket = socket;
        this.cache = cache;
        this.tier = tier == null ? null : tier.tier();
        room = tier == null ? null : tier.openRoom();
        this.namespaces = namespaces;
        this.driver = driver;
        memory = new EngineMappings(driver);
        try {
            boolean pinned = pin(driver, cache.hostMemory(), resources);
            resources.register(memory, EngineMappings::close);
            transferQueue = resources.register(
                    new TransferQueue(driver, pinned, threshold, MAX_EVENT_NANOS), TransferQueue::close);
            layeredLoads = new LayeredLoads(transferQueue);
        } catch (DeviceException refused) {
            throw resources.releaseAfter(refused);
        }
    }

    /// Registers the store's slots while the session lasts: the driver queues copies of registered memory only.
    ///
    /// @param slots of the store, or null when it has none here
    /// @return whether they are registered
    private static boolean pin(DeviceDriver driver, @Nullable MemorySegment slots, ResourceScope until) {
        if (slots == null || slots.byteSize() == 0) {
            return false;
        }
        DeviceException refused = driver.tryRegister(slots);
        if (refused == null) {
            until.register(slots, driver::unregister);
            return true;
        }
        LOG.log(
                Level.WARNING,
                "host memory stays unregistered: an engine's copies are slower, and its events are waited for "
                        + "before a copy is queued: {0}",
                refused.getMessage());
        return false;
    }

    TransferQueue transferQueue() {
        return transferQueue;
    }

    /// Gives back what blocks are pinned or reserved for copies that are over, or never will be.
    void abandon() {
        layeredLoads.abandon();
        transferQueue.abandon();
    }

    EngineMappings memory() {
        return memory;
    }

    /// Gives back what it has of the device, which does nothing for it any more.
    ///
    /// @throws DeviceException when the device refuses; the rest goes with the driver
    void close() {
        resources.releaseAll();
    }

    /// Takes what may have come within a time, and ends what has arrived.
    ///
    /// @return false when the engine is gone
    /// @throws DeviceException when nothing more can be done with the device
    boolean poll(int idleMillis) throws IOException {
        boolean isBusy = transferQueue.hasPending() || layeredLoads.hasPending() || roomRequest != null;
        if (socket.awaitReadable(isBusy ? 1 : idleMillis)) {
            UnixSocket.Packet packet = socket.receive();
            if (packet == null) {
                return false;
            }
            try {
                onRequest(packet);
            } finally {
                packet.closeDescriptors();
            }
        }
        layeredLoads.poll();
        transferQueue.poll();
        pollRoom();
        return true;
    }

    private void onRequest(UnixSocket.Packet packet) throws IOException {
        ByteBuffer body = packet.body();
        if (body.remaining() < EngineCodec.HEADER_BYTES) {
            throw new IOException("a message of " + body.remaining() + " bytes");
        }
        int kind = body.getInt();
        int number = body.getInt();
        ByteBuffer answer;
        try {
            answer = answer(kind, number, body, packet.descriptors());
        } catch (IllegalArgumentException | ArithmeticException | BufferUnderflowException wrong) {
            answer = EngineCodec.encodeRefused(
                    number, wrong.getMessage() == null ? "a message cut short" : wrong.getMessage());
        } catch (DeviceException refused) {
            socket.send(EngineCodec.encodeRefused(number, String.valueOf(refused.getMessage())), -1);
            if (refused.error().isFatal() || isCopy(kind)) {
                throw refused; // a copy may be half begun
            }
            return;
        }
        if (answer != null) {
            socket.send(answer, -1);
        }
    }

    private static boolean isCopy(int kind) {
        return switch (kind) {
            case EngineCodec.LOAD, EngineCodec.STORE, EngineCodec.LOAD_LAYERS, EngineCodec.AWAIT_LAYERS -> true;
            default -> false;
        };
    }

    private @Nullable ByteBuffer answer(int kind, int number, ByteBuffer body, List<Integer> descriptors) {
        if (!helloReceived && kind != EngineCodec.HELLO) {
            throw new IllegalArgumentException("the first message has to be HELLO, and was of kind " + kind);
        }
        return switch (kind) {
            case EngineCodec.HELLO -> onHello(number, body);
            case EngineCodec.REGION -> onRegion(number, body, descriptors);
            case EngineCodec.EVENT ->
                EngineCodec.encodeDone(
                        number, new long[] {memory.openEvent(EngineCodec.readBytes(body, DeviceIpc.TOKEN_BYTES))});
            case EngineCodec.POOL -> onPool(number, body);
            case EngineCodec.CHAIN -> onChain(number, body);
            case EngineCodec.LOAD -> onLoad(number, body);
            case EngineCodec.STORE -> onStore(number, body);
            case EngineCodec.STEPS -> onSteps(number, body);
            case EngineCodec.LOAD_LAYERS -> onLoadLayers(number, body);
            case EngineCodec.AWAIT_LAYERS -> onAwaitLayers(number, body);
            case EngineCodec.ROOM -> {
                onRoom(number, body);
                yield null;
            }
            case EngineCodec.SEAL -> {
                transferQueue.seal(body.getInt(), blocks -> onSealed(number, blocks));
                yield null;
            }
            default -> throw new IllegalArgumentException("messages are of no kind " + kind);
        };
    }

    private ByteBuffer onHello(int number, ByteBuffer body) {
        int version = body.getInt();
        EngineCodec.require(version == EngineCodec.VERSION, "version, which has to be " + EngineCodec.VERSION, version);
        String uuid = HexFormat.of().formatHex(EngineCodec.readBytes(body, EngineCodec.UUID_BYTES));
        if (!uuid.equals(driver.info().uuid())) {
            throw new IllegalArgumentException("the engine has device " + uuid + ", this door "
                    + driver.info().uuid());
        }
        helloReceived = true;
        DeviceIpc sharing = driver.ipc();
        return EngineCodec.encodeDone(number, Long.BYTES + 2 * DeviceIpc.TOKEN_BYTES)
                .putLong(EngineCodec.VERSION)
                .put(sharing.exportToken(transferQueue.loadedEvent()))
                .put(sharing.exportToken(transferQueue.storedEvent()))
                .flip();
    }

    private ByteBuffer onRegion(int number, ByteBuffer body, List<Integer> descriptors) {
        int how = body.getInt();
        int region;
        if (how == EngineCodec.BY_TOKEN) {
            region = memory.open(EngineCodec.readBytes(body, DeviceIpc.TOKEN_BYTES));
        } else {
            EngineCodec.require(
                    how == EngineCodec.BY_DESCRIPTOR, "how memory is named, 0 (token) or 1 (descriptor)", how);
            EngineCodec.require(
                    descriptors.size() == 1, "descriptors beside a region, which has to be 1", descriptors.size());
            region = memory.open(descriptors.getFirst(), body.getLong());
        }
        return EngineCodec.encodeDone(number, new long[] {region, memory.bytes(region)});
    }

    private ByteBuffer onPool(int number, ByteBuffer body) {
        EngineCodec.require(pools.size() < MAX_POOLS, "pools of an engine", pools.size() + 1L);
        String name = EngineCodec.readText(body);
        Namespace namespace = namespaces.apply(name);
        if (namespace == null) {
            throw new IllegalArgumentException("no blocks are served under the name '" + name + "'");
        }
        int layers = body.getInt();
        EngineCodec.require(layers >= 1 && layers <= MAX_LAYERS, "layers", layers);
        int sides = body.getInt();
        int pages = body.getInt();
        int pagesPerBlock = body.getInt();
        long sideStride = body.getLong();
        long pageStride = body.getLong();
        long pieceBytes = body.getLong();
        List<DeviceSpan> spans = new ArrayList<>();
        for (int layer = 0; layer < layers; layer++) {
            spans.add(memory.span(Math.toIntExact(body.getLong()), body.getLong(), body.getLong()));
        }
        EnginePagePool told = new EnginePagePool(
                new PagedLayout(spans, sides, sideStride, pages, pageStride, pieceBytes, pagesPerBlock), namespace);
        told.layout().requireDisjoint();
        transferQueue.prepare(told.layout());
        pools.add(told);
        return EngineCodec.encodeDone(number, new long[] {pools.size() - 1, namespace.blockTokens()});
    }

    private ByteBuffer onChain(int number, ByteBuffer body) {
        int name = body.getInt();
        EngineCodec.require(name >= 0 && name < MAX_CHAINS, "chain", name);
        int pool = body.getInt();
        EngineCodec.require(pool >= 0 && pool < pools.size(), "pool", pool);
        EnginePagePool of = pools.get(pool);
        int kept = body.getInt();
        int[] tokens = EngineCodec.readInts(body, body.getInt());
        EngineChain known = chains.get(name);
        boolean keeps = known != null && known.pool.equals(of) && kept <= known.chain.length();
        EngineCodec.require(kept == 0 || (kept > 0 && keeps), "blocks kept of chain " + name, kept);
        EngineCodec.require(
                kept + tokens.length / of.namespace().blockTokens() <= MAX_CHAIN_BLOCKS, "blocks of a chain", kept);
        BlockChain chain = known == null || kept == 0
                ? cache.chain(of.namespace(), tokens)
                : known.chain.prefix(kept).extend(tokens);
        chains.put(name, new EngineChain(of, chain));
        return EngineCodec.encodeDone(
                number, new long[] {chain.length(), cache.match(chain).blocks()});
    }

    /// Request to load or store blocks.
    ///
    /// @param pages of each block, each checked
    @SuppressWarnings("ArrayRecordComponent") // as they go on
    private record TransferRequest(
            EnginePagePool pool,
            BlockChain chain,
            int from,
            int[][] pages,
            @Nullable DeviceEvent after,
            long waitNanos) {

        int endBlock() {
            return from + pages.length;
        }

        /// Returns the rest of the timeout, which is for all blocks together.
        long remainingNanos(long since) {
            return Math.max(0, waitNanos - (System.nanoTime() - since));
        }
    }

    private TransferRequest parseTransfer(ByteBuffer body) {
        int name = body.getInt();
        EngineChain engineChain = chains.get(name);
        if (engineChain == null) {
            throw new IllegalArgumentException("chain " + name + " was not told");
        }
        int from = body.getInt();
        int blocks = body.getInt();
        int length = engineChain.chain.length();
        if (from < 0 || blocks < 1 || from > length || blocks > length - from) {
            throw new IllegalArgumentException(
                    blocks + " blocks from " + from + " on; chain " + name + " has " + length);
        }
        int event = body.getInt();
        DeviceEvent after = event == EngineCodec.NO_EVENT ? null : memory.event(event);
        int waitMillis = body.getInt();
        EngineCodec.require(waitMillis >= 0 && waitMillis <= MAX_WAIT_MILLIS, "milliseconds to wait", waitMillis);
        int[][] pages =
                engineChain.pool.pagesByBlock(EngineCodec.readInts(body, body.remaining() / Integer.BYTES), blocks);
        return new TransferRequest(
                engineChain.pool, engineChain.chain, from, pages, after, TimeUnit.MILLISECONDS.toNanos(waitMillis));
    }

    private ByteBuffer onLoad(int number, ByteBuffer body) {
        TransferRequest request = parseTransfer(body);
        long since = System.nanoTime();
        LoadSources sources = acquire(request, cache::acquire);
        int ready = sources.await(Duration.ofNanos(request.remainingNanos(since)));
        if (ready == 0) {
            sources.close();
            return EngineCodec.encodeDone(number, new long[] {0});
        }
        transferQueue.load(
                request.pool.layout(), sources, List.of(request.pages).subList(0, ready), request.after);
        return EngineCodec.encodeDone(number, new long[] {ready});
    }

    private LoadSources acquire(TransferRequest request, LoadSources.TableMaker acquire) {
        BlockChain chain = request.chain.prefix(request.endBlock());
        return LoadSources.acquire(cache, tier, chain, request.from, Duration.ofNanos(request.waitNanos), acquire);
    }

    private ByteBuffer onSteps(int number, ByteBuffer body) {
        int pool = body.getInt();
        EngineCodec.require(pool >= 0 && pool < pools.size(), "pool", pool);
        EnginePagePool of = pools.get(pool);
        int count = body.getInt();
        int layers = of.layout.layers().size();
        EngineCodec.require(count >= 1 && count <= Math.min(layers, MAX_STEPS), "steps of a pool", count);
        if (steps.containsKey(of)) {
            throw new IllegalArgumentException("the steps of pool " + pool + " were told before");
        }
        PoolSteps told = layeredLoads.steps(of.layout, count, of.hasLayersOfBlocks());
        steps.put(of, told);
        ByteBuffer answer = EngineCodec.encodeDone(number, Long.BYTES + told.count() * DeviceIpc.TOKEN_BYTES)
                .putLong(told.layersAStep());
        told.copied().forEach(event -> answer.put(driver.ipc().exportToken(event)));
        return answer.flip();
    }

    private ByteBuffer onLoadLayers(int number, ByteBuffer body) {
        TransferRequest request = parseTransfer(body);
        PoolSteps of = steps.get(request.pool);
        if (of == null) {
            throw new IllegalArgumentException("the pool has no steps; ask for STEPS first");
        }
        if (!layeredLoads.canBegin()) {
            throw new IllegalArgumentException("too many loads by layers are on their way; await some first");
        }
        LoadSources sources = acquire(
                request, (chain, from, timeout) -> cache.acquireByLayers(chain, from, timeout, of.layersAStep()));
        if (sources.blocks() == 0) {
            sources.close();
            return EngineCodec.encodeDone(number, new long[] {0, -1, of.count()});
        }
        int load = layeredLoads.begin(of, sources, List.of(request.pages), request.after);
        Progress progress = layeredLoads.progress(load);
        return EngineCodec.encodeDone(number, new long[] {progress.blocks(), load, progress.steps()});
    }

    private ByteBuffer onAwaitLayers(int number, ByteBuffer body) {
        Progress progress = layeredLoads.await(body.getInt(), body.getInt(), Duration.ofMillis(MAX_WAIT_MILLIS));
        return EngineCodec.encodeDone(number, new long[] {progress.blocks(), progress.steps()});
    }

    private ByteBuffer onStore(int number, ByteBuffer body) {
        TransferRequest request = parseTransfer(body);
        if (!transferQueue.canStore()) {
            throw new IllegalArgumentException("too many stores wait to be sealed; seal some first");
        }
        DeviceStaging staging = tier == null ? null : tier.staging();
        List<StoredBlock> blocks = new ArrayList<>();
        long since = System.nanoTime();
        for (int index = request.from; index < request.endBlock(); index++) {
            BlockWriter writer = cache.put(request.chain, index, 0, Duration.ofNanos(request.remainingNanos(since)));
            if (!writer.outcome().allowsNextBlock()) {
                writer.close();
                break;
            }
            StagedBlock staged = staging == null || writer.outcome() != PutOutcome.RESERVED
                    ? null
                    : staging.take(writer.segment().byteSize());
            blocks.add(new StoredBlock(request.chain.key(index), writer, staged));
        }
        int store = transferQueue.store(request.pool.layout(), blocks, request.pages, staging, request.after);
        return EngineCodec.encodeDone(number, new long[] {blocks.size(), store});
    }

    private void onRoom(int number, ByteBuffer body) {
        long bytes = body.getLong();
        int waitMillis = body.getInt();
        EngineCodec.require(waitMillis >= 0 && waitMillis <= MAX_WAIT_MILLIS, "milliseconds to wait", waitMillis);
        EngineRoom of = room;
        if (of == null) {
            throw new IllegalArgumentException("the server keeps no blocks in this device's memory");
        }
        if (roomRequest != null) {
            throw new IllegalArgumentException("a request for room is not answered yet");
        }
        Duration timeout = Duration.ofMillis(waitMillis);
        roomRequest = new RoomRequest(
                number,
                CompletableFuture.supplyAsync(
                        () -> of.take(bytes, timeout),
                        task -> Thread.ofVirtual().name("kvcache-room").start(task)));
    }

    private void pollRoom() throws IOException {
        RoomRequest request = roomRequest;
        if (request == null || !request.resized.isDone()) {
            return;
        }
        roomRequest = null;
        ByteBuffer answer;
        try {
            Resized resized = request.resized.join();
            long given = resized.before() - resized.after();
            answer = (given == 0 || resized.after() == 0) && !resized.reason().isEmpty()
                    ? EngineCodec.encodeRefused(request.number, resized.reason())
                    : EngineCodec.encodeDone(request.number, new long[] {given, resized.after()});
        } catch (CompletionException failed) {
            if (!(failed.getCause() instanceof IllegalArgumentException wrong)) {
                throw failed;
            }
            answer = EngineCodec.encodeRefused(request.number, String.valueOf(wrong.getMessage()));
        }
        socket.send(answer, -1);
    }

    /// Has the tier take again what the engine has got of it, once all else is closed.
    ///
    /// @param closing whether the server is
    void returnRoom(BooleanSupplier closing) {
        if (roomRequest != null) {
            roomRequest.resized.handle((_, _) -> "ended").join();
        }
        if (room != null) {
            room.close(closing);
        }
    }

    private void onSealed(int number, int blocks) {
        try {
            socket.send(EngineCodec.encodeDone(number, new long[] {blocks}), -1);
        } catch (IOException gone) {
            throw new UncheckedIOException(gone);
        }
    }

    /// An engine's pool, and the namespace that its blocks belong to.
    private record EnginePagePool(PagedLayout layout, Namespace namespace) {

        EnginePagePool {
            long bytes = namespace.blockBytes();
            boolean isOnePart =
                    namespace.parts().size() == 1 && namespace.groups().isEmpty();
            if (!isOnePart || layout.blockBytes() != bytes) {
                throw new IllegalArgumentException("a pool whose pages make blocks of " + layout.blockBytes()
                        + " bytes; " + namespace.model() + " has blocks of " + bytes + " in "
                        + namespace.parts().size() + " parts, and it takes one part of that size, of kind FULL");
            }
        }

        /// Returns whether a layer of the pool is a layer of the blocks, and not some other part of their bytes.
        boolean hasLayersOfBlocks() {
            return namespace.parts().getFirst().shape().layers()
                    == layout.layers().size();
        }

        /// The pages of each block, out of those of all.
        ///
        /// @throws IllegalArgumentException unless each is one of the pool's, and comes once
        int[][] pagesByBlock(int[] pages, int blocks) {
            int each = layout.pagesPerBlock();
            EngineCodec.require(
                    blocks >= 1 && pages.length == (long) blocks * each,
                    "pages of " + blocks + " blocks",
                    pages.length);
            BitSet seen = new BitSet();
            int[][] byBlock = new int[blocks][each];
            for (int i = 0; i < pages.length; i++) {
                layout.requirePage(pages[i]);
                if (seen.get(pages[i])) {
                    throw new IllegalArgumentException("page " + pages[i] + " comes twice");
                }
                seen.set(pages[i]);
                byBlock[i / each][i % each] = pages[i];
            }
            return byBlock;
        }
    }
}
