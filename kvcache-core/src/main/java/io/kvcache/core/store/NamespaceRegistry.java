package io.kvcache.core.store;

import io.kvcache.core.NamespaceStats;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import io.kvcache.core.identity.PartGroup;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.memory.SlotClass;
import io.kvcache.core.store.MemoryShares.SlotClassPolicies;
import io.kvcache.core.tree.BlockTree;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// The registered namespaces, by number and by name.
///
/// **Threads.** Any; look-ups take no lock.
public final class NamespaceRegistry {

    /// A record has 16 bits for its namespace.
    static final int MAX = 1 << 16;

    /// No namespace's number.
    static final int UNKNOWN = -1;

    /// Slot classes of a store: each needs a policy of its own, and policies number their queues with eight
    /// bits.
    private static final int MAX_CLASSES = 100;

    private final SlabPool slabs;
    private final SlotClassPolicies policies;

    /// Copied by each registration.
    private volatile List<NamespaceEntry> byId = List.of();

    /// Of those that [#byId] has.
    private final Map<Namespace, NamespaceEntry> byName = new ConcurrentHashMap<>();

    /// Under the names without their parts; under the store's lock.
    private final Map<Namespace, NamespaceEntry> byBareName = new HashMap<>();

    NamespaceRegistry(SlabPool slabs, SlotClassPolicies policies) {
        this.slabs = slabs;
        this.policies = policies;
    }

    /// Gives a namespace a number and a slot class, unless it has them; under the store's lock.
    ///
    /// @throws IllegalArgumentException as [io.kvcache.core.KvCache#register] says
    NamespaceEntry register(Namespace namespace) {
        NamespaceEntry known = find(namespace);
        if (known != null) {
            return known;
        }
        requireDistinct(namespace);
        List<EntryGroup> groups = new ArrayList<>();
        for (PartGroup group : namespace.groups()) {
            groups.add(new EntryGroup(group, register(group.namespace()), group.keyMask()));
        }
        NamespaceEntry added = newEntry(namespace, groups);
        groups.forEach(group -> group.entry.owner = new Owner(added, group));
        add(added);
        return added;
    }

    /// The entry of a registered namespace.
    ///
    /// @throws IllegalArgumentException when it is not registered
    NamespaceEntry require(Namespace namespace) {
        NamespaceEntry entry = byName.get(namespace);
        if (entry == null) {
            throw new IllegalArgumentException(namespace + " is not registered with this store");
        }
        return entry;
    }

    @Nullable
    NamespaceEntry find(Namespace namespace) {
        return byName.get(namespace);
    }

    /// The number of a namespace, or [#UNKNOWN], which no record has.
    int idOf(Namespace namespace) {
        NamespaceEntry entry = find(namespace);
        return entry == null ? UNKNOWN : entry.id();
    }

    /// A registered namespace that differs from this one in nothing but its parts.
    private @Nullable NamespaceEntry findWithOtherParts(Namespace namespace) {
        return byBareName.get(withoutParts(namespace));
    }

    NamespaceEntry byId(int id) {
        return byId.get(id);
    }

    List<NamespaceEntry> all() {
        return byId;
    }

    private void add(NamespaceEntry entry) {
        List<NamespaceEntry> all = new ArrayList<>(byId);
        all.add(entry);
        byId = List.copyOf(all);
        byBareName.put(withoutParts(entry.namespace()), entry);
        byName.put(entry.namespace(), entry);
    }

    private static Namespace withoutParts(Namespace namespace) {
        return namespace.toBuilder().parts(List.of()).build();
    }

    private void requireDistinct(Namespace namespace) {
        NamespaceEntry known = findWithOtherParts(namespace);
        if (known != null) {
            throw new IllegalArgumentException(namespace + " is registered with other parts. Registered: "
                    + describe(known.namespace().parts()) + ". Asked for: " + describe(namespace.parts())
                    + ". Blocks of one shape are not the other's; give one of them another revision or layout.");
        }
    }

    private NamespaceEntry newEntry(Namespace namespace, List<EntryGroup> groups) {
        int id = all().size();
        if (id >= MAX) {
            throw new IllegalArgumentException(
                    namespace + " would be number " + (id + 1) + "; a store takes up to " + MAX + " namespaces");
        }
        long bytes = namespace.blockBytes();
        if (bytes == 0) {
            return new NamespaceEntry(id, namespace, null, 0, groups);
        }
        if (bytes > BlockShape.MAX_BYTES) {
            throw new IllegalArgumentException(namespace + " has blocks of " + bytes
                    + " bytes with all parts; allowed: 1 to " + BlockShape.MAX_BYTES);
        }
        if (slabs.classCount() >= MAX_CLASSES && !slabs.hasClass(bytes)) {
            throw new IllegalArgumentException(namespace + " has blocks of " + bytes + " bytes, the "
                    + (MAX_CLASSES + 1) + "th size; a store takes blocks of up to " + MAX_CLASSES + " sizes");
        }
        if (!slabs.hasClass(bytes) && !policies.canAddClass()) {
            throw new IllegalArgumentException(namespace + " has blocks of " + bytes
                    + " bytes, another size; with this policy a store takes blocks of " + slabs.classCount()
                    + " sizes, and a namespace with a weight of its own counts as one");
        }
        if (bytes > slabs.capacityBytes()) {
            throw new IllegalArgumentException(namespace + " has blocks of " + bytes + " bytes; this store takes blocks"
                    + " of up to " + slabs.capacityBytes() + " bytes, all of its host memory: give it more hostBytes");
        }
        SlotClass slotClass = slabs.classOf(bytes);
        return new NamespaceEntry(id, namespace, slotClass, Math.toIntExact(bytes), groups);
    }

    private static String describe(List<Part> parts) {
        return parts.isEmpty()
                ? "none"
                : String.join(
                        "; ",
                        parts.stream()
                                .map(part -> part.kind() + " " + part.shape().describe())
                                .toList());
    }

    /// Windows or states of a namespace, as the store keeps them.
    ///
    /// @param entry of the group's own namespace
    /// @param keyMask what their keys differ by from those of blocks
    record EntryGroup(PartGroup group, NamespaceEntry entry, BlockKey keyMask) {

        /// Returns whether an entry has its place behind a block.
        boolean isBehind(int index) {
            return group.isBehind(index);
        }

        /// Upper half of the key of the entry behind a block, or of the block from that of the entry.
        long keyHi(long hi) {
            return hi ^ keyMask.hi();
        }

        /// Lower half likewise.
        long keyLo(long lo) {
            return lo ^ keyMask.lo();
        }
    }

    /// What the entries of a namespace belong to.
    ///
    /// @param blocks namespace of the blocks
    record Owner(NamespaceEntry blocks, EntryGroup group) {

        /// The block that an entry belongs to, or -1 if it is not in the tree.
        int find(BlockTree tree, long entryHi, long entryLo) {
            return tree.findAny(group.keyHi(entryHi), group.keyLo(entryLo));
        }
    }

    /// One registered namespace: its number, where its blocks go, and what it has asked for.
    public static final class NamespaceEntry {

        private final int id;
        private final Namespace namespace;
        private final @Nullable SlotClass slotClass;
        private final int blockBytes;
        private final List<EntryGroup> groups;
        /// Of entries of windows or states; under the store's lock.
        private @Nullable Owner owner;

        final LongAdder blocksRequested = new LongAdder();
        final LongAdder blocksFound = new LongAdder();
        final LongAdder blocksLoaded = new LongAdder();
        final LongAdder blocksFromDevice = new LongAdder();
        final LongAdder objectsRequested = new LongAdder();
        final LongAdder objectsFound = new LongAdder();

        /// Blocks and objects that are sealed; under the store's lock.
        long live;

        /// Their bytes; under the store's lock.
        long liveBytes;

        NamespaceEntry(
                int id, Namespace namespace, @Nullable SlotClass slotClass, int blockBytes, List<EntryGroup> groups) {
            this.id = id;
            this.namespace = namespace;
            this.slotClass = slotClass;
            this.blockBytes = blockBytes;
            this.groups = List.copyOf(groups);
        }

        public int id() {
            return id;
        }

        public Namespace namespace() {
            return namespace;
        }

        /// How many parts the namespace has.
        ///
        /// @throws IllegalArgumentException when it has none, and so no blocks
        public int requireParts() {
            slotClass();
            return namespace.parts().size();
        }

        /// The class of the namespace's blocks.
        ///
        /// @throws IllegalArgumentException when the namespace has no parts, and so no blocks
        SlotClass slotClass() {
            if (slotClass == null) {
                throw new IllegalArgumentException(namespace + " has no parts: it takes objects, not blocks");
            }
            return slotClass;
        }

        /// Bytes of one block.
        public int blockBytes() {
            return blockBytes;
        }

        /// Windows and states of the namespace.
        List<EntryGroup> groups() {
            return groups;
        }

        /// What entries of windows or states belong to, if that is registered; under the store's lock.
        @Nullable
        Owner owner() {
            return owner;
        }

        /// Counts a request for blocks.
        public void countRequest(int blocks, int found) {
            blocksRequested.add(blocks);
            blocksFound.add(found);
        }

        /// Counts blocks of an earlier request that have arrived from a slower tier.
        public void countLoaded(int blocks) {
            blocksFound.add(blocks);
            blocksLoaded.add(blocks);
        }

        /// Counts blocks that an engine took from its device, `alone` of which no table has counted as found.
        public void countFromDevice(int blocks, int alone) {
            blocksFound.add(alone);
            blocksFromDevice.add(blocks);
        }

        /// Counts a look-up of an object.
        public void countObjectRequest(boolean found) {
            objectsRequested.increment();
            if (found) {
                objectsFound.increment();
            }
        }

        NamespaceStats stats() {
            return new NamespaceStats(
                    namespace,
                    blocksRequested.sum(),
                    blocksFound.sum(),
                    blocksLoaded.sum(),
                    blocksFromDevice.sum(),
                    objectsRequested.sum(),
                    objectsFound.sum(),
                    live,
                    liveBytes);
        }
    }
}
