package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.RequestLabel;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.cluster.DropMark;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Function;

/// The blocks of a clustered cache: cuts chains into groups, and asks the owners of all groups at the same time.
///
/// **Threads.** Any.
final class ClusterBlocks {

    /// Never started: stands for any thread but the caller's.
    private static final Thread ANOTHER_THREAD = Thread.ofPlatform().unstarted(() -> {});

    private final ClusterMembers members;
    private final Executor executor;
    private final PeerClock clock;
    private final long connectNanos;

    /// Some blocks of a chain that lie on one server.
    ///
    /// @param from first block that is wanted, in the whole chain
    /// @param to block behind the last one
    private record Part(BlockGroup group, int from, int to, ClusterRoute.Reached server) {

        KvCache cache() {
            return server.connection().cache();
        }

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
    }

    /// @param executor runs a request to one server while the caller runs another
    /// @param connectNanos how long a call waits for a server that is being connected
    ClusterBlocks(ClusterMembers members, Executor executor, PeerClock clock, long connectNanos) {
        this.members = members;
        this.executor = executor;
        this.clock = clock;
        this.connectNanos = connectNanos;
    }

    /// Cuts blocks into parts. Ends before the first group of which no server is reached.
    ///
    /// @param in namespace of the groups
    private List<Part> parts(BlockChain chain, Namespace in, int from, int to) {
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
            parts.add(new Part(group, at, end, server));
            at = end;
        }
        return parts;
    }

    Match match(BlockChain chain, Namespace in, Function<KvCache, Function<BlockChain, Match>> how) {
        List<Part> parts = parts(chain, in, 0, chain.length());
        List<Match> found = each(parts, part -> how.apply(part.cache()).apply(part.group.chain()));
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

    BlockTable acquire(BlockChain chain, Namespace in, int from, Duration timeout) {
        List<Part> parts = parts(chain, in, from, chain.length());
        if (parts.isEmpty()) {
            return BlockTable.empty(from);
        }
        if (parts.size() == 1 && parts.getFirst().group.first() == 0) {
            Part only = parts.getFirst();
            return call(only, part -> part.cache().acquire(part.chain(), from, timeout));
        }
        List<ClusterBlockTable.GroupTable> tables = new ArrayList<>();
        List<BlockTable> found = eachOrClose(
                parts, true, part -> part.cache().acquire(part.chain(), part.offset(), timeout), BlockTable::close);
        for (int i = 0; i < found.size(); i++) {
            Part part = parts.get(i);
            tables.add(new ClusterBlockTable.GroupTable(part.group.first(), part.to, found.get(i)));
        }
        return new ClusterBlockTable(from, tables, clock);
    }

    int getAll(BlockChain chain, Namespace in, int from, List<MemorySegment> into) {
        List<Part> parts = parts(chain, in, from, Math.min(chain.length(), from + into.size()));
        List<Integer> copied = each(
                parts,
                isShareable(into),
                part -> part.cache()
                        .getAll(part.chain(), part.offset(), into.subList(part.from - from, part.to - from)));
        int all = 0;
        for (int i = 0; i < copied.size(); i++) {
            all += copied.get(i);
            if (copied.get(i) < parts.get(i).blocks()) {
                break;
            }
        }
        return all;
    }

    BlockWriter put(BlockChain chain, Namespace in, int index, int blockPart, Duration timeout) {
        List<Part> parts = parts(chain, in, index, index + 1);
        return parts.isEmpty()
                ? new NoRoomWriter()
                : call(
                        parts.getFirst(),
                        part -> part.cache().put(part.group.chain(), part.offset(), blockPart, timeout));
    }

    PutSummary putAll(BlockChain chain, Namespace in, int from, List<MemorySegment> blocks, Duration timeout) {
        List<Part> parts = parts(chain, in, from, from + blocks.size());
        List<PutSummary> summaries = each(
                parts,
                isShareable(blocks),
                part -> part.cache()
                        .putAll(
                                part.chain(),
                                part.offset(),
                                blocks.subList(part.from - from, part.to - from),
                                timeout));
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
        List<Part> parts = parts(chain, in, from, chain.length());
        List<Boolean> taken = each(parts, part -> part.cache().hint(hintFor(hint, part)));
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
            if (!parallel || i == 0 || part.server.connection().isMemoryMapped()) {
                calls.addOwn(() -> call(part, call));
            } else {
                calls.start(() -> call(part, call));
            }
        }
        return calls.results(close);
    }

    /// Calls a server, and notes whether it failed.
    private static <T> T call(Part part, Function<Part, T> call) {
        ClusterRoute.Reached server = part.server;
        long failedBefore = server.connection().failureCount();
        T result = call.apply(part);
        if (server.connection().failureCount() > failedBefore) {
            server.peer().onFailure();
        } else {
            server.peer().onSuccess();
        }
        return result;
    }
}
