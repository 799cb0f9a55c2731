package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.stats.PrefixLevel;
import io.kvcache.core.stats.PrefixLevel.PrefixNode;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Shows the blocks of a store as a tree of shared prefixes, one level at a time.
///
/// A node is a run of blocks without a branch. One pass over all records finds for each block the node of
/// the wanted level that it lies below: it climbs until it meets a record whose node is known, and notes
/// the node at all that it passed, so each record is climbed over once. That takes four bytes for each
/// record while it runs, and some for each node. The lock is held for some thousand steps at a time; what
/// comes and goes meanwhile is counted or not.
///
/// **Threads.** Any, one at a time.
public final class PrefixScan {

    /// Records looked at and climbed over in one turn of the lock: some hundred microseconds.
    private static final int TURN_STEPS = 8192;

    /// Nodes that are listed; further ones count in [PrefixLevel#more] alone. They take 36 bytes each.
    private static final int MAX_NODES = 1 << 18;

    /// Longest run that is measured; a longer one is shown as if it branched there.
    private static final int MAX_RUN = 1 << 16;

    private static final int UNVISITED = 0;
    private static final int OUTSIDE = -1;

    private final RecordPool pool;
    private final BlockTree tree;
    private final RecordStates recordStates;
    private final RecordLookup lookup;
    private final ReentrantLock lock;

    PrefixScan(HostStore store) {
        pool = store.pool;
        tree = store.tree;
        recordStates = store.recordStates;
        lookup = store.lookup;
        lock = store.lock;
    }

    /// Lists the nodes of a level.
    ///
    /// @param namespaces by number, whose blocks are shown
    /// @param under first block of the run whose branches are shown; null for those that chains begin with
    /// @param limit nodes that are listed at most
    synchronized PrefixLevel scan(IntPredicate namespaces, @Nullable BlockKey under, int limit) {
        Pass pass = new Pass(namespaces);
        if (!pass.begin(under)) {
            return new PrefixLevel(List.of(), 0, 0, 0);
        }
        pass.visitAll();
        return pass.level(limit);
    }

    /// One pass over all records.
    private final class Pass {

        private final IntPredicate namespaces;
        /// By record: [#UNVISITED], [#OUTSIDE] or the number of its node and one.
        private int[] nodeOf = new int[0];
        /// The record that the nodes' first blocks follow; NONE for first blocks of chains.
        private int above = NONE;
        private int count;
        private long uncounted;
        private int[] first = new int[64];
        private int[] blocks = new int[64];
        private int[] inMemory = new int[64];
        private int[] onDisk = new int[64];
        private int[] onDevice = new int[64];
        private int[] uses = new int[64];
        private long[] bytes = new long[64];
        private long[] lastUse = new long[64];

        Pass(IntPredicate namespaces) {
            this.namespaces = namespaces;
        }

        /// Returns false when the run to look below is not known.
        boolean begin(@Nullable BlockKey under) {
            nodeOf = new int[highWaterMark()];
            lock.lock();
            try {
                lookup.drainUses();
                if (under == null) {
                    return true;
                }
                int record = tree.findAny(under.hi(), under.lo());
                if (record == NONE || !isWanted(record)) {
                    return false;
                }
                above = endOfRun(record);
                return true;
            } finally {
                lock.unlock();
            }
        }

        private int highWaterMark() {
            lock.lock();
            try {
                return pool.highWaterMark();
            } finally {
                lock.unlock();
            }
        }

        private boolean isWanted(int record) {
            int flags = pool.flags(record);
            return ControlWord.isKnown(recordStates.stateOf(record))
                    && !RecordFlags.isObject(flags)
                    && namespaces.test(RecordFlags.namespaceId(flags));
        }

        private int endOfRun(int record) {
            int end = record;
            for (int length = 1; length < MAX_RUN; length++) {
                int next = onlyChild(end);
                if (next == NONE) {
                    break;
                }
                end = next;
            }
            return end;
        }

        /// The child of a record that has one; NONE when it has several or none.
        private int onlyChild(int record) {
            int[] found = {NONE, 0};
            tree.allChildrenMatch(record, Integer.MAX_VALUE, child -> {
                if (ControlWord.isKnown(recordStates.stateOf(child))) {
                    found[0] = child;
                    found[1]++;
                }
                return found[1] < 2;
            });
            return found[1] == 1 ? found[0] : NONE;
        }

        void visitAll() {
            for (int record = 0; record < nodeOf.length; ) {
                lock.lock();
                try {
                    int steps = 0;
                    for (; record < nodeOf.length && steps < TURN_STEPS; record++) {
                        steps += isWanted(record) ? visit(record) : 1;
                    }
                } finally {
                    lock.unlock();
                }
            }
        }

        /// Counts a block to its node.
        ///
        /// @return the steps it took
        private int visit(int record) {
            int steps = 1;
            int top = record;
            int node = nodeOf[record];
            while (node == UNVISITED) {
                int parent = pool.parent(top);
                if (parent == above) {
                    node = add(top);
                } else if (parent == NONE || parent >= nodeOf.length) {
                    node = OUTSIDE;
                } else {
                    top = parent;
                    node = nodeOf[top];
                    steps++;
                }
            }
            for (int at = record; at != NONE && at < nodeOf.length && nodeOf[at] == UNVISITED; at = pool.parent(at)) {
                nodeOf[at] = node;
                if (at == top) {
                    break;
                }
            }
            if (node != OUTSIDE) {
                count(record, node - 1);
            }
            return steps;
        }

        private int add(int record) {
            if (count == MAX_NODES) {
                uncounted++;
                return OUTSIDE;
            }
            if (count == first.length) {
                grow();
            }
            first[count] = record;
            lastUse[count] = -1;
            uses[count] = -1;
            return ++count;
        }

        private void grow() {
            int room = count * 2;
            first = Arrays.copyOf(first, room);
            blocks = Arrays.copyOf(blocks, room);
            inMemory = Arrays.copyOf(inMemory, room);
            onDisk = Arrays.copyOf(onDisk, room);
            onDevice = Arrays.copyOf(onDevice, room);
            uses = Arrays.copyOf(uses, room);
            bytes = Arrays.copyOf(bytes, room);
            lastUse = Arrays.copyOf(lastUse, room);
        }

        private void count(int record, int node) {
            blocks[node]++;
            bytes[node] += pool.bytes(record);
            onDisk[node] += recordStates.isOnDisk(record) ? 1 : 0;
            onDevice[node] += RecordFlags.has(pool.flags(record), RecordFlags.ON_DEVICE) ? 1 : 0;
            if (recordStates.stateOf(record) == ControlWord.SEALED) {
                inMemory[node]++;
                EvictionPolicy policy = recordStates.policyOf(record);
                lastUse[node] = Math.max(lastUse[node], policy.lastUse(record));
                if (record == first[node]) {
                    uses[node] = policy.uses(record);
                }
            }
        }

        PrefixLevel level(int limit) {
            Comparator<Integer> order = Comparator.<Integer>comparingInt(node -> -uses[node])
                    .thenComparingInt(node -> -blocks[node])
                    .thenComparingInt(node -> node);
            List<PrefixNode> nodes = new ArrayList<>();
            IntStream.range(0, count)
                    .filter(node -> blocks[node] > 0)
                    .boxed()
                    .sorted(order)
                    .limit(limit)
                    .forEach(node -> nodes.add(node(node)));
            long known =
                    IntStream.range(0, count).filter(node -> blocks[node] > 0).count();
            return new PrefixLevel(
                    nodes,
                    known - nodes.size() + uncounted,
                    Arrays.stream(blocks, 0, count).asLongStream().sum(),
                    Arrays.stream(bytes, 0, count).sum());
        }

        private PrefixNode node(int node) {
            lock.lock();
            try {
                int record = first[node];
                boolean still = isWanted(record) && pool.parent(record) == above;
                int end = still ? endOfRun(record) : record;
                int[] branches = {0};
                tree.forEachChild(
                        end, child -> branches[0] += ControlWord.isKnown(recordStates.stateOf(child)) ? 1 : 0);
                return new PrefixNode(
                        new BlockKey(pool.keyHi(record), pool.keyLo(record)),
                        RecordFlags.namespaceId(pool.flags(record)),
                        pool.depth(record),
                        still ? pool.depth(end) - pool.depth(record) + 1 : 0,
                        blocks[node],
                        bytes[node],
                        inMemory[node],
                        onDisk[node],
                        onDevice[node],
                        still ? branches[0] : 0,
                        uses[node],
                        lastUse[node]);
            } finally {
                lock.unlock();
            }
        }
    }
}
