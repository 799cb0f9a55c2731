package io.kvcache.cluster;

import io.kvcache.cluster.DropRecord.NamespaceDigest;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.DropListener;
import io.kvcache.transport.cluster.DropMark;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.ProtocolException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger.Level;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// Brings drops of groups to all servers of a cluster, also to those that were away when a client dropped.
///
/// Each server tells the others a digest of the drops that it has applied. Where digests differ, one server for
/// each digest broadcasts its records: those since all agreed, or all. A server that hears of a drop applies it,
/// remembers it, and tells its new digest. So a drop that a client brought to all servers itself costs no message
/// of its own.
///
/// **The order that keeps dropped blocks away.** A drop is in the log before the store applies it, and in the
/// digest that others see after it. [#digest] is that of the log. So a server that asks another one for blocks,
/// and compares its own log with what the other one tells, never gets what it knows to be dropped.
///
/// **A server that is never told.** Where the messages of the others cannot be read, a server that joins would
/// wait without end. After [#GIVE_UP_NANOS] without news it has its store [give up][DropTarget#giveUp] everything
/// that may have been dropped, and agrees.
///
/// **Ownership.** Hears the messages of its views from the start.
///
/// **Threads.** [#step] by one thread, all else by any.
public final class DropExchange implements DropListener {

    private static final System.Logger LOG = System.getLogger(DropExchange.class.getName());

    /// First byte of a message; others are of later versions.
    private static final int RECORDS = 1;

    private static final int MESSAGE_RECORDS = (Membership.MAX_MESSAGE_BYTES - 3) / DropRecord.BYTES;

    /// A whole log, from several servers.
    private static final int MAX_MESSAGES = 1024;

    /// What a server that joins waits for news of drops that it lacks, when its disks have been read: the others
    /// have then told them three times.
    private static final long GIVE_UP_NANOS = TimeUnit.SECONDS.toNanos(31);

    /// A client needs about this long to bring a drop to all servers by itself.
    private static final long QUIET_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

    /// Time between two broadcasts of the same.
    private static final long REPEAT_NANOS = TimeUnit.SECONDS.toNanos(10);

    /// At most a message of 60 KiB in this time, after the first one.
    private static final long MESSAGE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    /// Time between two steps, in which more than one message may go out.
    private static final long STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private static final long COMPACT_NANOS = TimeUnit.HOURS.toNanos(1);

    /// A client's clock that differs more from this server's is not believed.
    private static final long MAX_CLOCK_DIFFERENCE_MILLIS = 60_000;

    private final DropTarget target;
    private final ViewKeeper views;
    private final LongSupplier wallMillis;
    private final Queue<List<DropRecord>> messages = new ArrayBlockingQueue<>(MAX_MESSAGES);
    private final AtomicLong applied = new AtomicLong();

    /// Guards the log and what follows until [#waiting].
    private final Object lock = new Object();

    private final DropLog log;

    /// Drops in the log that the store is applying.
    private int beingApplied;

    /// Applied, and not remembered yet.
    private List<DropRecord> unsaved = new ArrayList<>();

    /// Added since all servers agreed for the last time; null when these are not all that another one may lack.
    private @Nullable List<DropRecord> news;

    private volatile long digest;

    // The rest belongs to the thread of [#step].

    /// Heard of, and not applicable yet.
    private final List<DropRecord> waiting = new ArrayList<>();

    private final Queue<byte[]> outgoing = new ArrayDeque<>();
    private long nextMessageNanos;
    private boolean agreed = true;
    private Set<Member> agreedMembers = Set.of();
    private Set<Member> members = Set.of();
    private long dueNanos;
    private long quietUntilNanos;
    private long compactNanos;
    private boolean begun;
    private boolean seesServing;
    private long listenUntilNanos;

    /// When this server lacked nothing, or has heard something new, for the last time.
    private long newsNanos;

    private volatile boolean gaveUp;

    /// Whether everything that this server has heard of is applied, and it has listened long enough.
    private volatile boolean settled;

    private record Member(String name, long incarnation) {}

    /// @param log what this server has applied before
    /// @param wallMillis milliseconds since 1970
    public DropExchange(DropLog log, DropTarget target, ViewKeeper views, LongSupplier wallMillis) {
        this.log = log;
        this.target = target;
        this.views = views;
        this.wallMillis = wallMillis;
        digest = log.digest();
        views.listenToMessages(RECORDS, (_, body) -> onMessage(body));
    }

    /// Returns the digest of all drops that this server knows, applied or not.
    public long digest() {
        return digest;
    }

    /// Returns the number of drops that this server knows.
    public int size() {
        synchronized (lock) {
            return log.size();
        }
    }

    /// Returns how many drops it has applied that came from other servers.
    public long appliedCount() {
        return applied.get();
    }

    /// A client drops something here. The record is durable when what this returns has been run.
    @Override
    public Runnable onDrop(Namespace groups, @Nullable BlockKey from, DropMark mark) {
        DropRecord added = begin(groups, from, mark);
        return () -> onApplied(added == null ? List.of() : List.of(added), true);
    }

    /// Drops a block and all below it: here now, at the other servers when they hear of it, mostly within half a
    /// second. May wait for a disk.
    ///
    /// @return how many blocks went here
    /// @throws UncheckedIOException when they went, and the disk cannot remember it
    public long drop(Namespace groups, BlockKey from) {
        DropRecord drop = Objects.requireNonNull(begin(groups, from, new DropMark(wallMillis.getAsLong(), 0)));
        try {
            return target.drop(drop);
        } finally {
            onApplied(List.of(drop), true);
        }
    }

    /// The store is about to apply a drop. Returns its record; null when it is known.
    private @Nullable DropRecord begin(Namespace groups, @Nullable BlockKey from, DropMark mark) {
        NamespaceDigest namespace = NamespaceDigest.of(groups);
        long now = wallMillis.getAsLong();
        boolean believed = Math.abs(mark.millis() - now) <= MAX_CLOCK_DIFFERENCE_MILLIS;
        long id = mark.id() == 0 ? ThreadLocalRandom.current().nextLong() : mark.id();
        DropRecord drop = null;
        synchronized (lock) {
            if (log.find(namespace, from, id) == null) {
                long millis = log.nextMillis(namespace, believed ? mark.millis() : now);
                drop = from == null
                        ? DropRecord.ofNamespace(namespace, millis, id)
                        : DropRecord.ofChain(namespace, from, millis, id);
                add(drop);
            }
            beingApplied++;
        }
        return drop;
    }

    /// Under the lock.
    private boolean add(DropRecord drop) {
        boolean isNew = log.add(drop);
        digest = log.digest();
        List<DropRecord> since = news;
        if (since != null && since.size() < MESSAGE_RECORDS) {
            since.add(drop);
        } else {
            news = null;
        }
        return isNew;
    }

    /// @param must whether the caller has to know when they are not remembered
    private void onApplied(List<DropRecord> drops, boolean must) {
        synchronized (lock) {
            unsaved.addAll(drops);
            try {
                if (!unsaved.isEmpty()) {
                    target.remember(unsaved);
                    unsaved = new ArrayList<>();
                }
            } catch (IOException failed) {
                if (must) {
                    throw new UncheckedIOException("dropped, but the disk cannot remember it", failed);
                }
                LOG.log(Level.WARNING, "drops of the cluster cannot be written: " + failed.getMessage());
            } finally {
                beingApplied--;
            }
        }
    }

    /// A member has sent a message. What can be read of it counts.
    private void onMessage(BodyReader body) throws ProtocolException {
        List<DropRecord> records = new ArrayList<>();
        try {
            int count = body.u16("records");
            for (int i = 0; i < count; i++) {
                records.add(DropRecord.read(body));
            }
        } finally {
            if (!records.isEmpty() && !messages.offer(records)) {
                LOG.log(Level.DEBUG, "a message with drops is dropped; they are told again");
            }
        }
    }

    /// Does what there is to do: applies what came, tells what is new. Call it some ten times a second, once this
    /// server has joined.
    ///
    /// @param nowNanos nanoseconds since some fixed moment
    public void step(long nowNanos) {
        if (!begun) {
            begun = true;
            dueNanos = nowNanos;
            quietUntilNanos = nowNanos;
            nextMessageNanos = nowNanos;
            compactNanos = nowNanos;
            newsNanos = nowNanos;
        }
        boolean joins = views.self().state() == NodeState.JOINING;
        if (applyReceived() && joins) {
            quietUntilNanos = nowNanos + QUIET_NANOS; // while others tell, this one listens
            newsNanos = nowNanos;
        }
        boolean repaired = target.repair();
        if (repaired) {
            compact(nowNanos);
            tellDigest();
        }
        boolean listens = listens(nowNanos);
        settled = repaired && waiting.isEmpty() && !listens;
        if (joins && !gaveUp) {
            giveUpIfNotTold(nowNanos);
        }
        exchange(nowNanos);
    }

    private void giveUpIfNotTold(long nowNanos) {
        if (!settled || views.view().serving().isEmpty() || agreesWithServing()) {
            newsNanos = nowNanos;
        } else if (nowNanos - newsNanos >= GIVE_UP_NANOS) {
            LOG.log(
                    Level.WARNING,
                    "no other server has told in %s s what was dropped while this one was away (see kv_cluster_unreadable_messages_total); it drops all blocks of the cluster that it has, and serves"
                            .formatted(TimeUnit.NANOSECONDS.toSeconds(nowNanos - newsNanos)));
            target.giveUp();
            settled = false; // until the next step
            gaveUp = true;
        }
    }

    /// Whether a drop that a client already got its answer for may still be on its way to this server. Others
    /// send a new digest with their next step, and a client may not have seen yet that this server is there.
    private boolean listens(long nowNanos) {
        boolean joins = views.self().state() == NodeState.JOINING;
        boolean sees = joins && !views.view().serving().isEmpty();
        if (sees && !seesServing) {
            listenUntilNanos = nowNanos + QUIET_NANOS;
        }
        seesServing = sees;
        return sees && nowNanos - listenUntilNanos < 0;
    }

    /// Returns whether anything was new.
    private boolean applyReceived() {
        List<DropRecord> received = new ArrayList<>(waiting);
        waiting.clear();
        for (List<DropRecord> told = messages.poll(); told != null; told = messages.poll()) {
            received.addAll(told);
        }
        List<DropRecord> done = new ArrayList<>();
        synchronized (lock) {
            beingApplied++;
        }
        for (DropRecord drop : received) {
            apply(drop, done);
        }
        onApplied(done, false);
        return !done.isEmpty();
    }

    private void apply(DropRecord drop, List<DropRecord> done) {
        boolean isNew;
        synchronized (lock) {
            if (log.contains(drop)) {
                return;
            }
            if (!target.canDrop(drop.namespace())) {
                waiting.add(drop);
                return;
            }
            isNew = add(drop);
        }
        if (isNew) {
            target.drop(drop);
            applied.incrementAndGet();
        }
        done.add(drop);
    }

    private void compact(long nowNanos) {
        synchronized (lock) {
            if (beingApplied > 0 || (nowNanos - compactNanos < 0 && !log.isFull())) {
                return;
            }
            compactNanos = nowNanos + COMPACT_NANOS;
            List<DropRecord> floors = log.compact(wallMillis.getAsLong());
            if (!floors.isEmpty()) {
                digest = log.digest();
                news = null;
                beingApplied++;
                onApplied(floors, false);
            }
        }
    }

    private void tellDigest() {
        long own;
        synchronized (lock) {
            if (beingApplied > 0) {
                return;
            }
            own = log.digest();
        }
        if (views.self().drops() != own) {
            views.setDrops(own);
        }
    }

    private void exchange(long nowNanos) {
        ClusterView view = views.view();
        NodeInfo self = view.node(views.self().name());
        if (self == null) {
            return;
        }
        Set<Member> present = new HashSet<>();
        view.nodes().forEach(node -> present.add(new Member(node.name(), node.incarnation())));
        boolean met = !members.containsAll(present);
        members = present;
        if (view.nodes().stream().allMatch(node -> node.drops() == self.drops())) {
            onAgreed(self.drops());
            return;
        }
        if (agreed || met) {
            boolean joins = self.state() == NodeState.JOINING; // the others know more
            dueNanos = met && !joins ? nowNanos : nowNanos + QUIET_NANOS;
        }
        agreed = false;
        boolean due = nowNanos - dueNanos >= 0 && nowNanos - quietUntilNanos >= 0;
        if (due && outgoing.isEmpty() && speaksFor(view, self)) {
            dueNanos = nowNanos + REPEAT_NANOS;
            outgoing.addAll(toMessages(lackedByOthers()));
        }
        send(nowNanos);
    }

    private void onAgreed(long common) {
        agreed = true;
        agreedMembers = members;
        outgoing.clear();
        synchronized (lock) {
            if (log.digest() == common) {
                news = new ArrayList<>();
            }
        }
    }

    /// Of the servers that know the same drops one speaks.
    private static boolean speaksFor(ClusterView view, NodeInfo self) {
        return view.nodes().stream()
                .filter(node -> node.drops() == self.drops())
                .findFirst()
                .filter(first -> first.name().equals(self.name()))
                .isPresent();
    }

    /// What is new first; if that does not help, everything.
    private List<DropRecord> lackedByOthers() {
        synchronized (lock) {
            List<DropRecord> since = news;
            news = null;
            return since != null && agreedMembers.containsAll(members) ? since : log.records();
        }
    }

    private static List<byte[]> toMessages(List<DropRecord> drops) {
        List<byte[]> all = new ArrayList<>();
        for (int from = 0; from < drops.size(); from += MESSAGE_RECORDS) {
            List<DropRecord> some = drops.subList(from, Math.min(drops.size(), from + MESSAGE_RECORDS));
            BodyWriter body = new BodyWriter(3 + some.size() * DropRecord.BYTES)
                    .u8(RECORDS)
                    .u16(some.size());
            some.forEach(drop -> drop.write(body));
            all.add(body.toBytes());
        }
        return all;
    }

    private void send(long nowNanos) {
        while (nowNanos - nextMessageNanos >= 0 && !outgoing.isEmpty()) {
            views.broadcast(outgoing.remove());
            nextMessageNanos = Math.max(nextMessageNanos, nowNanos - STEP_NANOS) + MESSAGE_NANOS;
        }
    }

    /// Returns whether this server has applied what the others have: those that serve; all, where none does. Also
    /// when it has given up everything that they may have dropped.
    public boolean agreesWithServing() {
        if (!settled || gaveUp) {
            return settled;
        }
        String name = views.self().name();
        long own = digest;
        List<NodeInfo> others = views.view().nodes().stream()
                .filter(node -> !node.name().equals(name))
                .toList();
        List<NodeInfo> serving = others.stream()
                .filter(node -> node.state() == NodeState.SERVING)
                .toList();
        return serving.isEmpty()
                ? others.stream().allMatch(node -> node.drops() == own)
                : serving.stream().anyMatch(node -> node.drops() == own);
    }

    /// The store of a server, as far as drops of the cluster concern it, and the file that remembers them.
    ///
    /// **Threads.** Any.
    public interface DropTarget {

        /// Returns false while the disks are being read and may still tell of a namespace that the store does
        /// not know yet.
        boolean canDrop(NamespaceDigest namespace);

        /// Drops something here; nothing where the store does not know the namespace.
        ///
        /// @return how many blocks went
        long drop(DropRecord drop);

        /// Remembers drops for ever. All of them have been applied.
        ///
        /// @param added since the last call, in the order of the log
        /// @throws IOException when the disk fails. The same are given again
        void remember(List<DropRecord> added) throws IOException;

        /// Has [#repair] drop everything of the cluster that is here, as it cannot be known what was dropped.
        void giveUp();

        /// Drops what has to go although no record names it, as the file was damaged or others cannot tell; as
        /// far as that is possible yet.
        ///
        /// @return whether nothing of it is left
        boolean repair();
    }
}
