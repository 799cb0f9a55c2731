package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.RequestLabel;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.cluster.DropMark;
import io.kvcache.transport.net.FailurePause;
import io.kvcache.transport.peer.Peer.ReadLoad;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import org.jspecify.annotations.Nullable;

/// The blocks of a clustered cache: cuts chains into groups, and asks the owners of all groups at the same time.
///
/// **Copies.** A group is read at the server that [GroupCopies] chooses. If that is not the owner, what is
/// resident there counts, and the owner is asked for the rest with all the time that the caller gives. So a copy
/// never shortens what the owner has. Blocks are put to the owner alone.
///
/// **Threads.** Any.
final class ClusterBlocks {

    /// Never started: stands for any thread but the caller's.
    private static final Thread ANOTHER_THREAD = Thread.ofPlatform().unstarted(() -> {});

    private final ClusterMembers members;
    private final GroupCopies copies;
    private final Executor executor;
    private final PeerClock clock;
    private final long connectNanos;

    /// Some blocks of a chain that lie on one server.
    ///
    /// @param from first block that is wanted, in the whole chain
    /// @param to block behind the last one
    /// @param server the owner, or the one that takes its place
    /// @param copy another server to read from first, or null for none
    private record Part(
            ClusterRoute route,
            BlockGroup group,
            int from,
            int to,
            ClusterRoute.Reached server,
            ClusterRoute.@Nullable Reached copy) {

        /// Index of the first wanted block in the group's own chain.
        int offset() {
            return from - group.first();
        }

        /// The group's chain up to the last wanted block.
        BlockChain chain() {
            return group.chain().prefix(to - group.first());
        }

        int blocks() {
            return to - from;
        }

        /// Returns whether reading it sends no message.
        boolean isMemoryMapped() {
            return (copy == null ? server : copy).connection().isMemoryMapped();
        }

        /// This part from a later block on, of the owner alone.
        Part rest(int from) {
            return new Part(route, group, from, to, server, null);
        }

        long bytes(int blocks) {
            return blocks * group.chain().namespace().blockBytes();
        }
    }

    /// @param executor runs a request to one server while the caller runs another
    /// @param connectNanos how long a call waits for a server that is being connected
    ClusterBlocks(ClusterMembers members, GroupCopies copies, Executor executor, PeerClock clock, long connectNanos) {
        this.members = members;
        this.copies = copies;
        this.executor = executor;
        this.clock = clock;
        this.connectNanos = connectNanos;
    }

    /// Cuts blocks into parts. Ends before the first group of which no server is reached.
    ///
    /// @param in namespace of the groups
    /// @param reads whether copies may be used
    private List<Part> parts(BlockChain chain, Namespace in, int from, int to, boolean reads) {
        ClusterRoute route = members.route();
        long until = clock.deadlineAfter(connectNanos);
        List<Part> parts = new ArrayList<>();
        int at = from;
        while (at < to) {
            BlockGroup group = BlockGroup.of(chain, at, in);
            ClusterRoute.Reached server = route.reach(group.key(), in, until);
            if (server == null) {
                return parts;
            }
            int end = Math.min(to, group.end());
            parts.add(new Part(route, group, at, end, server, reads ? copies.choose(route, group, server) : null));
            at = end;
        }
        return parts;
    }

    Match match(BlockChain chain, Namespace in, Function<KvCache, Function<BlockChain, Match>> how) {
        List<Part> parts = parts(chain, in, 0, chain.length(), true);
        List<Match> found = each(parts, part -> match(part, how));
        int device = 0;
        int host = 0;
        int disk = 0;
        for (int i = 0; i < found.size(); i++) {
            Match match = found.get(i);
            device += match.deviceBlocks();
            host += match.hostBlocks();
            disk += match.diskBlocks();
            if (match.blocks() < parts.get(i).blocks()) {
                break;
            }
        }
        return new Match(device, host, disk);
    }

    /// Of a copy only resident blocks count, as no others are read there.
    private Match match(Part part, Function<KvCache, Function<BlockChain, Match>> how) {
        ClusterRoute.Reached copy = part.copy;
        if (copy == null) {
            return call(part.server, cache -> how.apply(cache).apply(part.chain()));
        }
        Match at = call(copy, cache -> cache.match(part.chain()));
        Match resident = new Match(at.deviceBlocks(), at.hostBlocks(), 0);
        if (resident.blocks() == part.blocks()) {
            return resident;
        }
        Match owned = call(part.server, cache -> how.apply(cache).apply(part.chain()));
        boolean isShorter = resident.blocks() < owned.blocks();
        noteCopy(part, copy, isShorter);
        return isShorter ? owned : resident;
    }

    private void noteCopy(Part part, ClusterRoute.Reached copy, boolean isMissing) {
        if (isMissing) {
            copies.onMissing(part.group, part.chain(), copy);
        } else {
            copies.onComplete(part.group, copy);
        }
    }

    BlockTable acquire(BlockChain chain, Namespace in, int from, Duration timeout) {
        List<Part> parts = parts(chain, in, from, chain.length(), true);
        if (parts.isEmpty()) {
            return BlockTable.empty(from);
        }
        List<ClusterBlockTable.GroupTable> tables =
                eachOrClose(parts, true, part -> acquire(part, timeout), ClusterBlocks::close).stream()
                        .flatMap(List::stream)
                        .toList();
        return tables.size() == 1 && tables.getFirst().first() == 0
                ? tables.getFirst().table()
                : new ClusterBlockTable(from, tables, clock);
    }

    private static void close(List<ClusterBlockTable.GroupTable> tables) {
        tables.forEach(each -> each.table().close());
    }

    /// Returns the table of a part: that of the copy if it has all, else what the copy has and the owner's table
    /// of the rest.
    private List<ClusterBlockTable.GroupTable> acquire(Part part, Duration timeout) {
        ClusterRoute.Reached copy = part.copy;
        if (copy == null) {
            return List.of(tableOf(part, part.server, timeout));
        }
        ClusterBlockTable.GroupTable resident = tableOf(part, copy, KvCache.NO_WAIT);
        int end = resident.endBlock();
        if (end == part.to) {
            copies.onComplete(part.group, copy);
            return List.of(resident);
        }
        try {
            ClusterBlockTable.GroupTable rest = tableOf(part.rest(end), part.server, timeout);
            noteCopy(part, copy, rest.endBlock() > end);
            if (end > part.from) {
                return List.of(new ClusterBlockTable.GroupTable(resident.first(), end, resident.table()), rest);
            }
            resident.table().close();
            return List.of(rest);
        } catch (RuntimeException failed) {
            resident.table().close();
            throw failed;
        }
    }

    private ClusterBlockTable.GroupTable tableOf(Part part, ClusterRoute.Reached server, Duration timeout) {
        BlockTable table = read(
                part,
                server,
                cache -> cache.acquire(part.chain(), part.offset(), timeout),
                found -> found.endBlock() - part.offset());
        return new ClusterBlockTable.GroupTable(part.group.first(), part.to, table);
    }

    /// Copies blocks of one server, or a part of each.
    @FunctionalInterface
    interface BlockCopier {

        /// Returns how many leading blocks were copied.
        ///
        /// @param from block of the chain that is copied to `into.get(0)`
        int copy(KvCache server, BlockChain chain, int from, List<MemorySegment> into, Duration timeout);
    }

    /// Blocks to be copied from the servers that have them.
    ///
    /// @param from block of the chain that is copied to `into.get(0)`
    /// @param timeout of owners; of what others have copies of, only what is resident counts
    record CopyRequest(int from, List<MemorySegment> into, Duration timeout, BlockCopier copier) {

        private int copy(Part part, KvCache server, Duration wait) {
            return copier.copy(
                    server, part.chain(), part.offset(), into.subList(part.from - from, part.to - from), wait);
        }
    }

    int copy(BlockChain chain, Namespace in, CopyRequest request) {
        int end = Math.min(chain.length(), request.from + request.into.size());
        List<Part> parts = parts(chain, in, request.from, end, true);
        List<Integer> copied = each(parts, isShareable(request.into), part -> copy(part, request));
        int all = 0;
        for (int i = 0; i < copied.size(); i++) {
            all += copied.get(i);
            if (copied.get(i) < parts.get(i).blocks()) {
                break;
            }
        }
        return all;
    }

    private int copy(Part part, CopyRequest request) {
        ClusterRoute.Reached copy = part.copy;
        int copied = copy == null ? 0 : copyOut(part, copy, request, KvCache.NO_WAIT);
        if (copied == part.blocks()) {
            return copied;
        }
        int more = copyOut(part.rest(part.from + copied), part.server, request, request.timeout);
        if (copy != null) {
            noteCopy(part, copy, more > 0);
        }
        return copied + more;
    }

    private int copyOut(Part part, ClusterRoute.Reached server, CopyRequest request, Duration wait) {
        return read(part, server, cache -> request.copy(part, cache, wait), count -> count);
    }

    BlockWriter put(BlockChain chain, Namespace in, int index, int blockPart, Duration timeout) {
        List<Part> parts = parts(chain, in, index, index + 1, false);
        return parts.isEmpty() ? new NoRoomWriter() : put(parts.getFirst(), blockPart, timeout);
    }

    private static BlockWriter put(Part part, int blockPart, Duration timeout) {
        return call(part.server, cache -> cache.put(part.group.chain(), part.offset(), blockPart, timeout));
    }

    PutSummary putAll(BlockChain chain, Namespace in, int from, List<MemorySegment> blocks, Duration timeout) {
        List<Part> parts = parts(chain, in, from, from + blocks.size(), false);
        List<PutSummary> summaries = each(
                parts,
                isShareable(blocks),
                part -> call(
                        part.server,
                        cache -> cache.putAll(
                                part.chain(),
                                part.offset(),
                                blocks.subList(part.from - from, part.to - from),
                                timeout)));
        int stored = 0;
        int present = 0;
        PutOutcome last = parts.isEmpty() && !blocks.isEmpty() ? PutOutcome.NO_ROOM : PutOutcome.PRESENT;
        for (int i = 0; i < summaries.size(); i++) {
            PutSummary summary = summaries.get(i);
            stored += summary.stored();
            present += summary.present();
            last = summary.last();
            if (summary.accepted() < parts.get(i).blocks()) {
                return new PutSummary(stored, present, last);
            }
        }
        boolean unreached = stored + present < blocks.size();
        return new PutSummary(stored, present, unreached ? PutOutcome.NO_ROOM : last);
    }

    /// Drops blocks at one server.
    static int drop(ClusterConnection at, BlockChain chain, Namespace in, int from, DropMark mark) {
        int dropped = 0;
        int start = from;
        while (start < chain.length()) {
            BlockGroup group = BlockGroup.of(chain, start, in);
            dropped += at.drop(group.chain(), start - group.first(), mark);
            start = group.end();
        }
        return dropped;
    }

    boolean hint(Hint hint, Namespace in) {
        BlockChain chain = hint.chain();
        int from = fromOf(hint);
        if (chain.length() == 0 || from >= chain.length()) {
            return false;
        }
        List<Part> parts = parts(chain, in, from, chain.length(), false);
        List<Boolean> taken = each(parts, part -> call(part.server, cache -> cache.hint(hintFor(hint, part))));
        return !taken.isEmpty() && taken.stream().allMatch(one -> one);
    }

    private static int fromOf(Hint hint) {
        return switch (hint) {
            case Hint.Expect _, Hint.Pin _ -> 0;
            case Hint.Forget forget -> forget.from();
            case Hint.Label label -> label.from();
            case Hint.Weigh weigh -> weigh.from();
            case Hint.Expire expire -> expire.from();
        };
    }

    /// Returns a hint about one part. A label loses its session: a server that saw only some groups of a turn would
    /// take the others for left behind.
    private static Hint hintFor(Hint hint, Part part) {
        BlockChain chain = part.group.chain();
        int from = part.offset();
        return switch (hint) {
            case Hint.Expect expect -> new Hint.Expect(chain, expect.delay());
            case Hint.Pin pin -> new Hint.Pin(chain, pin.time());
            case Hint.Forget _ -> new Hint.Forget(chain, from);
            case Hint.Label label -> new Hint.Label(chain, from, withoutSession(label.label()));
            case Hint.Weigh weigh -> {
                int first = Math.min(part.from - weigh.from(), weigh.weights().size());
                int end = Math.min(part.to - weigh.from(), weigh.weights().size());
                yield new Hint.Weigh(chain, from, weigh.weights().subList(first, end));
            }
            case Hint.Expire expire -> new Hint.Expire(chain, from, expire.delay());
        };
    }

    private static RequestLabel withoutSession(RequestLabel label) {
        return new RequestLabel(label.kind(), 0, label.turn(), label.last());
    }

    /// Calls the server of each part, all at the same time. Servers whose memory is read in place are called by the
    /// caller's thread.
    ///
    /// @return the results in the order of the parts
    private <T> List<T> each(List<Part> parts, Function<Part, T> call) {
        return each(parts, true, call);
    }

    /// @param parallel whether other threads may run the calls
    private <T> List<T> each(List<Part> parts, boolean parallel, Function<Part, T> call) {
        return eachOrClose(parts, parallel, call, result -> {});
    }

    /// Returns whether other threads may use the caller's memory: not if it is of a confined arena.
    private static boolean isShareable(List<MemorySegment> segments) {
        return segments.stream().allMatch(segment -> segment.isAccessibleBy(ANOTHER_THREAD));
    }

    /// @param close closes a result when another call has thrown
    private <T> List<T> eachOrClose(List<Part> parts, boolean parallel, Function<Part, T> call, Consumer<T> close) {
        ParallelCalls<T> calls = new ParallelCalls<>(executor, clock);
        for (int i = 0; i < parts.size(); i++) {
            Part part = parts.get(i);
            if (!parallel || i == 0 || part.isMemoryMapped()) {
                calls.addOwn(() -> call.apply(part));
            } else {
                calls.start(() -> call.apply(part));
            }
        }
        return calls.results(close);
    }

    /// Reads at a server, and notes how much.
    ///
    /// @param count of the blocks that came
    private <T> T read(Part part, ClusterRoute.Reached server, Function<KvCache, T> call, ToIntFunction<T> count) {
        ReadLoad load = server.peer().readLoad;
        long wanted = part.bytes(part.blocks());
        load.begin(wanted);
        long bytes = 0;
        try {
            T result = call(server, call);
            int blocks = count.applyAsInt(result);
            bytes = part.bytes(blocks);
            if (blocks > 0) {
                BlockChain read = part.group.chain().prefix(part.offset() + blocks);
                copies.onRead(part.route, part.group, read, bytes, server.equals(part.copy));
            }
            return result;
        } finally {
            load.end(wanted, bytes, clock.nanos());
        }
    }

    /// Calls a server, and notes whether it failed.
    static <T> T call(ClusterRoute.Reached server, Function<KvCache, T> call) {
        FailurePause.Call begun = server.peer().beginCall();
        long failedBefore = server.connection().failureCount();
        T result = call.apply(server.connection().cache());
        if (server.connection().failureCount() > failedBefore) {
            server.peer().onFailure(begun);
        } else {
            server.peer().onSuccess();
        }
        return result;
    }

    /// The writer of a put for which no server could be reached.
    static final class NoRoomWriter implements BlockWriter, ObjectWriter {

        @Override
        public PutOutcome outcome() {
            return PutOutcome.NO_ROOM;
        }

        @Override
        public MemorySegment segment() {
            throw nothingReserved();
        }

        @Override
        public void copyFrom(MemorySegment source) {
            throw nothingReserved();
        }

        @Override
        public List<MemorySegment> segments() {
            throw nothingReserved();
        }

        @Override
        public void advance(long bytes) {
            throw nothingReserved();
        }

        @Override
        public SealOutcome seal() {
            throw nothingReserved();
        }

        @Override
        public SealOutcome seal(int checksum) {
            throw nothingReserved();
        }

        private static IllegalStateException nothingReserved() {
            return new IllegalStateException("nothing is reserved: the outcome was " + PutOutcome.NO_ROOM);
        }

        @Override
        public void close() {
            // Nothing was reserved.
        }
    }
}
