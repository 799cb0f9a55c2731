package io.kvcache.server.keyspace;

import io.kvcache.core.engine.EngineValueKey;
import io.kvcache.core.stats.ObjectResidency;
import io.kvcache.server.keyspace.KeyIndex.KeyEntry;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/// The chunks of LMCache that a keyspace has, as trees of the sequences that clients read.
///
/// Each model and worker, which is all of a key but its digest, has trees of its own. Which chunk comes after which is
/// what [ChunkOrder] has learned from requests: a chunk that was not asked for since the start is in no tree, and one
/// whose predecessor has left, or is on another server, stands below the nearest one that is here. Both halves of a
/// chunk count as one.
///
/// **Bound.** Some 200 bytes for each chunk of one model whose place is known; [#MAX_MODELS] models.
///
/// **Threads.** One at a time.
public final class ChunkTree {

    private static final int MAX_MODELS = 1000;
    private static final int UNPLACED = -1;

    /// Being placed: a chunk that is met again is behind itself, as clients may have shown it.
    private static final int PLACING = -2;

    private final KeyIndex index;
    private final ChunkOrder order;
    private final @Nullable String stem;
    private final Map<String, ChunkModel> models = new TreeMap<>();
    private final Map<String, Chunk> chunks = new HashMap<>();
    private long otherValues;
    private long unreadValues;

    /// @param stem of the model whose chunks are put in order; null to count those of all
    ChunkTree(KeyIndex index, ChunkOrder order, @Nullable String stem) {
        this.index = index;
        this.order = order;
        this.stem = stem;
    }

    /// The chunks of one model for one worker.
    ///
    /// @param stem a key with `*` in the place of its digest
    /// @param placed chunks whose place in a sequence is known
    public record ChunkModel(String stem, long chunks, long placed, long bytes, long memoryChunks, long diskChunks) {

        private ChunkModel plus(ObjectResidency object, boolean counts, boolean isPlaced) {
            return new ChunkModel(
                    stem,
                    chunks + (counts ? 1 : 0),
                    placed + (counts && isPlaced ? 1 : 0),
                    bytes + object.bytes(),
                    memoryChunks + (counts && object.inMemory() ? 1 : 0),
                    diskChunks + (counts && object.onDisk() ? 1 : 0));
        }

        /// Returns the model and what else keys say, all but the worker.
        public String model() {
            String[] fields = stem.split("@");
            List<String> all = Arrays.asList(fields);
            List<String> behind = all.subList(digestAt(fields) + 1, fields.length);
            return String.join("@", all.subList(0, numbersFrom(fields)))
                    + (behind.isEmpty() ? "" : " " + String.join(" ", behind));
        }

        /// Returns the number of workers and of this one, `4@0`, as keys have it; empty where they have none.
        public String worker() {
            String[] fields = stem.split("@");
            return String.join("@", Arrays.asList(fields).subList(numbersFrom(fields), digestAt(fields)));
        }

        private static int digestAt(String[] fields) {
            int at = 0;
            while (!fields[at].endsWith("*")) {
                at++;
            }
            return at;
        }

        private static int numbersFrom(String[] fields) {
            int from = digestAt(fields);
            while (from > 1 && fields[from - 1].chars().allMatch(Character::isDigit)) {
                from--;
            }
            return from;
        }
    }

    /// A run of chunks without a branch, and all below it.
    ///
    /// @param digest of its first chunk
    /// @param depth chunks before it in its sequence
    /// @param run length of it in its sequence
    /// @param chunks of it and below it
    /// @param branches runs that follow directly behind it
    /// @param uses of its first chunk since that came into memory, about; -1 when that is not known
    /// @param lastUse clock reading of the policy at the last use of any of its chunks; -1 when it is not known
    public record ChunkNode(
            String digest,
            int depth,
            int run,
            long chunks,
            long bytes,
            long memoryChunks,
            long diskChunks,
            int branches,
            int uses,
            long lastUse) {}

    /// A chunk whose place is known.
    private static final class Chunk {

        private final String digest;
        private final List<Chunk> next = new ArrayList<>(1);
        private long bytes;
        private boolean inMemory;
        private boolean onDisk;
        private int uses = -1;
        private long lastUse = -1;
        private int depth = UNPLACED;
        private int behind;

        Chunk(String digest) {
            this.digest = digest;
        }
    }

    /// Adds an object of the keyspace.
    public void add(ObjectResidency object) {
        KeyEntry entry = index.find(object.digest());
        ChunkKey key = entry == null ? null : ChunkKey.of(entry.key().bytes());
        if (entry == null) {
            unreadValues++;
        } else if (key == null || (stem == null && models.size() == MAX_MODELS && !models.containsKey(key.stem()))) {
            otherValues++;
        } else if (stem == null) {
            boolean counts = !EngineValueKey.isMetadata(key.key());
            boolean isPlaced = order.predecessorOf(key.digest()) != null;
            models.compute(
                    key.stem(),
                    (of, known) ->
                            (known == null ? new ChunkModel(of, 0, 0, 0, 0, 0) : known).plus(object, counts, isPlaced));
        } else if (stem.equals(key.stem()) && order.predecessorOf(key.digest()) != null) {
            addTo(chunks.computeIfAbsent(key.digest(), Chunk::new), object, EngineValueKey.isMetadata(key.key()));
        }
    }

    private static void addTo(Chunk chunk, ObjectResidency object, boolean isMetadata) {
        chunk.bytes += object.bytes();
        if (!isMetadata) {
            chunk.inMemory = object.inMemory();
            chunk.onDisk = object.onDisk();
            chunk.uses = object.uses();
            chunk.lastUse = object.lastUse();
        }
    }

    /// Returns the models that have chunks here.
    public List<ChunkModel> models() {
        return List.copyOf(models.values());
    }

    /// Returns how many values have keys of another form.
    public long otherValues() {
        return otherValues;
    }

    /// Returns how many values were found on disk and not asked for since, so that their keys are not known.
    public long unreadValues() {
        return unreadValues;
    }

    /// Returns the runs that sequences of the model begin with, or those behind one, the most used first.
    ///
    /// @param under digest of the first chunk of the run to look behind; null for the beginnings
    public List<ChunkNode> nodes(@Nullable String under) {
        List<Chunk> beginnings = new ArrayList<>();
        chunks.values().forEach(chunk -> place(chunk, beginnings));
        Chunk above = under == null ? null : chunks.get(under);
        List<Chunk> level = under == null ? beginnings : above == null ? List.of() : endOfRun(above).next;
        return level.stream()
                .map(ChunkTree::nodeOf)
                .sorted(Comparator.comparingInt((ChunkNode node) -> -node.uses)
                        .thenComparingLong(node -> -node.chunks)
                        .thenComparing(ChunkNode::digest))
                .toList();
    }

    private void place(Chunk chunk, List<Chunk> beginnings) {
        Deque<Chunk> path = new ArrayDeque<>();
        Chunk at = chunk;
        while (at != null && at.depth == UNPLACED) {
            at.depth = PLACING;
            path.push(at);
            at = before(at);
        }
        Chunk parent = at == null || at.depth == PLACING ? null : at;
        for (Chunk each : path) {
            each.depth = each.behind + (parent == null ? 0 : parent.depth + 1);
            (parent == null ? beginnings : parent.next).add(each);
            parent = each;
        }
    }

    /// The nearest chunk before one that is here, or null; notes how many between them are not.
    private @Nullable Chunk before(Chunk chunk) {
        String digest = order.predecessorOf(chunk.digest);
        chunk.behind = 0;
        while (digest != null && !digest.equals(ChunkOrder.NONE) && chunk.behind < ChunkOrder.MAX_DEPTH) {
            Chunk known = chunks.get(digest);
            if (known != null) {
                return known;
            }
            chunk.behind++;
            digest = order.predecessorOf(digest);
        }
        return null;
    }

    private static Chunk endOfRun(Chunk first) {
        Chunk end = first;
        while (end.next.size() == 1) {
            end = end.next.getFirst();
        }
        return end;
    }

    private static ChunkNode nodeOf(Chunk first) {
        Chunk end = endOfRun(first);
        long count = 0;
        long bytes = 0;
        long inMemory = 0;
        long onDisk = 0;
        long lastUse = -1;
        Deque<Chunk> left = new ArrayDeque<>(List.of(first));
        while (!left.isEmpty()) {
            Chunk each = left.pop();
            count++;
            bytes += each.bytes;
            inMemory += each.inMemory ? 1 : 0;
            onDisk += each.onDisk ? 1 : 0;
            lastUse = Math.max(lastUse, each.lastUse);
            left.addAll(each.next);
        }
        return new ChunkNode(
                first.digest,
                first.depth,
                end.depth - first.depth + 1,
                count,
                bytes,
                inMemory,
                onDisk,
                end.next.size(),
                first.uses,
                lastUse);
    }
}
