package io.kvcache.gpu.engine;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceIpc;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.ResourceScope;
import io.kvcache.gpu.paging.PagedLayout;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// What one engine asks, and what is done about it.
///
/// **Threads.** One, which also has the driver.
final class EngineSession {

    private static final int MOST_POOLS = 64;
    private static final int MOST_CHAINS = 1024;
    private static final int MOST_BLOCKS_OF_A_CHAIN = 1 << 20;
    private static final int MOST_WAIT_MILLIS = 10_000;
    private static final int MOST_LAYERS = 1024;
    private static final long LONGEST_EVENT_NANOS = TimeUnit.SECONDS.toNanos(10);

    private final UnixSocket socket;
    private final KvCache cache;
    private final Map<String, Namespace> namespaces;
    private final DeviceDriver driver;
    private final EngineMemory memory;
    private final ResourceScope holdings = new ResourceScope();
    private final Transfers transfers;
    private final List<EnginePool> pools = new ArrayList<>();
    private final Map<Integer, Sequence> chains = new HashMap<>();
    private boolean greeted;

    private record Sequence(EnginePool pool, BlockChain chain) {}

    /// @param driver of this session alone; the caller's, to be closed after this
    EngineSession(
            UnixSocket socket,
            KvCache cache,
            Map<String, Namespace> namespaces,
            DeviceDriver driver,
            DoorThreshold threshold) {
        this.socket = socket;
        this.cache = cache;
        this.namespaces = namespaces;
        this.driver = driver;
        memory = new EngineMemory(driver);
        try {
            FixedMemory fixed = holdings.register(FixedMemory.of(driver, cache.hostMemory()), FixedMemory::close);
            holdings.register(memory, EngineMemory::close);
            PieceWay way = new PieceWay(driver, fixed.holds(), threshold);
            transfers = holdings.register(new Transfers(driver, way, LONGEST_EVENT_NANOS), Transfers::close);
        } catch (DeviceException refused) {
            throw holdings.releaseAfter(refused);
        }
    }

    Transfers transfers() {
        return transfers;
    }

    EngineMemory memory() {
        return memory;
    }

    /// Gives back what it has of the device, which does nothing for it any more.
    ///
    /// @throws DeviceException when the device refuses; the rest goes with the driver
    void close() {
        holdings.releaseAll();
    }

    /// Takes what may have come within a time, and ends what has arrived.
    ///
    /// @return false when the engine is gone
    /// @throws DeviceException when nothing more can be done with the device
    boolean turn(int idleMillis) throws IOException {
        if (socket.readable(transfers.busy() ? 1 : idleMillis)) {
            UnixSocket.Packet packet = socket.receive();
            if (packet == null) {
                return false;
            }
            try {
                take(packet);
            } finally {
                packet.closeDescriptors();
            }
        }
        transfers.poll();
        return true;
    }

    private void take(UnixSocket.Packet packet) throws IOException {
        ByteBuffer body = packet.body();
        if (body.remaining() < Wire.HEADER_BYTES) {
            throw new IOException("a message of " + body.remaining() + " bytes");
        }
        int kind = body.getInt();
        int number = body.getInt();
        ByteBuffer answer;
        try {
            answer = answer(kind, number, body, packet.descriptors());
        } catch (IllegalArgumentException | ArithmeticException | BufferUnderflowException wrong) {
            answer = Wire.refused(number, wrong.getMessage() == null ? "a message cut short" : wrong.getMessage());
        } catch (DeviceException refused) {
            socket.send(Wire.refused(number, String.valueOf(refused.getMessage())), -1);
            if (refused.error().isFatal() || kind == Wire.LOAD || kind == Wire.STORE) {
                throw refused; // a copy may be half begun
            }
            return;
        }
        if (answer != null) {
            socket.send(answer, -1);
        }
    }

    private @Nullable ByteBuffer answer(int kind, int number, ByteBuffer body, List<Integer> descriptors) {
        if (!greeted && kind != Wire.HELLO) {
            throw new IllegalArgumentException("the first message has to be HELLO, and was of kind " + kind);
        }
        return switch (kind) {
            case Wire.HELLO -> hello(number, body);
            case Wire.REGION -> region(number, body, descriptors);
            case Wire.EVENT ->
                Wire.done(number, new long[] {memory.openEvent(Wire.bytes(body, DeviceIpc.TOKEN_BYTES))});
            case Wire.POOL -> pool(number, body);
            case Wire.CHAIN -> chain(number, body);
            case Wire.LOAD -> load(number, body);
            case Wire.STORE -> store(number, body);
            case Wire.SEAL -> {
                transfers.seal(body.getInt(), blocks -> sealed(number, blocks));
                yield null;
            }
            default -> throw new IllegalArgumentException("messages are of no kind " + kind);
        };
    }

    private ByteBuffer hello(int number, ByteBuffer body) {
        int version = body.getInt();
        Wire.require(version == Wire.VERSION, "version, which has to be " + Wire.VERSION, version);
        String uuid = HexFormat.of().formatHex(Wire.bytes(body, Wire.UUID_BYTES));
        if (!uuid.equals(driver.info().uuid())) {
            throw new IllegalArgumentException("the engine has device " + uuid + ", this door "
                    + driver.info().uuid());
        }
        greeted = true;
        DeviceIpc sharing = driver.ipc();
        return Wire.done(number, Long.BYTES + 2 * DeviceIpc.TOKEN_BYTES)
                .putLong(Wire.VERSION)
                .put(sharing.exportToken(transfers.loaded()))
                .put(sharing.exportToken(transfers.stored()))
                .flip();
    }

    private ByteBuffer region(int number, ByteBuffer body, List<Integer> descriptors) {
        int how = body.getInt();
        int region;
        if (how == Wire.BY_TOKEN) {
            region = memory.open(Wire.bytes(body, DeviceIpc.TOKEN_BYTES));
        } else {
            Wire.require(how == Wire.BY_DESCRIPTOR, "how memory is told of, 0 or 1", how);
            Wire.require(descriptors.size() == 1, "descriptors beside a region, which has to be 1", descriptors.size());
            region = memory.open(descriptors.getFirst(), body.getLong());
        }
        return Wire.done(number, new long[] {region, memory.bytes(region)});
    }

    private ByteBuffer pool(int number, ByteBuffer body) {
        Wire.require(pools.size() < MOST_POOLS, "pools of an engine", pools.size() + 1L);
        String name = Wire.text(body);
        Namespace namespace = namespaces.get(name);
        if (namespace == null) {
            throw new IllegalArgumentException("no blocks are served under the name '" + name + "'");
        }
        int layers = body.getInt();
        Wire.require(layers >= 1 && layers <= MOST_LAYERS, "layers", layers);
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
        EnginePool told = new EnginePool(
                new PagedLayout(spans, sides, sideStride, pages, pageStride, pieceBytes, pagesPerBlock), namespace);
        transfers.prepare(told);
        pools.add(told);
        return Wire.done(number, new long[] {pools.size() - 1, namespace.blockTokens()});
    }

    private ByteBuffer chain(int number, ByteBuffer body) {
        int name = body.getInt();
        Wire.require(name >= 0 && name < MOST_CHAINS, "chain", name);
        int pool = body.getInt();
        Wire.require(pool >= 0 && pool < pools.size(), "pool", pool);
        EnginePool of = pools.get(pool);
        int kept = body.getInt();
        int[] tokens = Wire.ints(body, body.getInt());
        Sequence known = chains.get(name);
        boolean keeps = known != null && known.pool.equals(of) && kept <= known.chain.length();
        Wire.require(kept == 0 || (kept > 0 && keeps), "blocks kept of chain " + name, kept);
        Wire.require(
                kept + tokens.length / of.namespace().blockTokens() <= MOST_BLOCKS_OF_A_CHAIN,
                "blocks of a chain",
                kept);
        BlockChain chain = known == null || kept == 0
                ? BlockChain.of(of.namespace(), tokens)
                : known.chain.prefix(kept).extend(tokens);
        chains.put(name, new Sequence(of, chain));
        return Wire.done(number, new long[] {chain.length(), cache.match(chain).blocks()});
    }

    /// What is said of blocks that are to be loaded or stored.
    ///
    /// @param pages of each block, each checked
    @SuppressWarnings("ArrayRecordComponent") // as they go on
    private record Wanted(
            EnginePool pool,
            BlockChain chain,
            int from,
            int[][] pages,
            @Nullable DeviceEvent after,
            long waitNanos) {

        int end() {
            return from + pages.length;
        }

        /// What is left of the time to wait, which is for all blocks together.
        long leftNanos(long since) {
            return Math.max(0, waitNanos - (System.nanoTime() - since));
        }
    }

    private Wanted wanted(ByteBuffer body) {
        int name = body.getInt();
        Sequence sequence = chains.get(name);
        if (sequence == null) {
            throw new IllegalArgumentException("chain " + name + " was not told");
        }
        int from = body.getInt();
        int blocks = body.getInt();
        int length = sequence.chain.length();
        if (from < 0 || blocks < 1 || from > length || blocks > length - from) {
            throw new IllegalArgumentException(
                    blocks + " blocks from " + from + " on; chain " + name + " has " + length);
        }
        int event = body.getInt();
        DeviceEvent after = event == Wire.NO_EVENT ? null : memory.event(event);
        int waitMillis = body.getInt();
        Wire.require(waitMillis >= 0 && waitMillis <= MOST_WAIT_MILLIS, "milliseconds to wait", waitMillis);
        int[][] pages = sequence.pool.byBlock(Wire.ints(body, body.remaining() / Integer.BYTES), blocks);
        return new Wanted(sequence.pool, sequence.chain, from, pages, after, TimeUnit.MILLISECONDS.toNanos(waitMillis));
    }

    private ByteBuffer load(int number, ByteBuffer body) {
        Wanted wanted = wanted(body);
        long since = System.nanoTime();
        BlockTable table = cache.acquire(wanted.chain.prefix(wanted.end()), wanted.from, wanted.waitNanos);
        int ready = table.await(wanted.pages.length, wanted.leftNanos(since));
        if (ready == 0) {
            table.close();
            return Wire.done(number, new long[] {0});
        }
        transfers.load(wanted.pool, table, Arrays.copyOf(wanted.pages, ready), wanted.after);
        return Wire.done(number, new long[] {ready});
    }

    private ByteBuffer store(int number, ByteBuffer body) {
        Wanted wanted = wanted(body);
        if (!transfers.mayStore()) {
            throw new IllegalArgumentException("too many stores wait to be sealed; seal some first");
        }
        List<BlockWriter> writers = new ArrayList<>();
        long since = System.nanoTime();
        for (int index = wanted.from; index < wanted.end(); index++) {
            BlockWriter writer = cache.put(wanted.chain, index, 0, wanted.leftNanos(since));
            if (!writer.outcome().allowsNextBlock()) {
                writer.close();
                break;
            }
            writers.add(writer);
        }
        int store = transfers.store(wanted.pool, writers, wanted.pages, wanted.after);
        return Wire.done(number, new long[] {writers.size(), store});
    }

    private void sealed(int number, int blocks) {
        try {
            socket.send(Wire.done(number, new long[] {blocks}), -1);
        } catch (IOException gone) {
            throw new UncheckedIOException(gone);
        }
    }
}
