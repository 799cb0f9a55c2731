package io.kvcache.tiers;

import io.kvcache.core.RequestLabel;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.HintApplier;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.tiers.TtlQueue.ChainSuffixes;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Progress of sessions, so that the blocks a turn leaves behind of the one before it can be released.
///
/// Keeps the last 1,024 blocks or objects of each session, and the most recently labelled sessions of each group
/// of namespaces.
///
/// **Threads.** Any.
final class SessionTracker {

    private final Map<Integer, Group> groups = new HashMap<>();
    private final Map<Namespace, Integer> groupOf = new HashMap<>();
    private long released;

    private record Session(Namespace namespace, long number) {}

    private record LastTurn(int turn, SessionTurn position) {

        int charge() {
            return ChainSuffixes.charge(position.size());
        }
    }

    /// The oldest label first.
    private static final class Group {
        final Map<Session, LastTurn> sessions = new LinkedHashMap<>();
        int charge;
    }

    /// A session has come to a turn: what it has left behind is let go.
    ///
    /// @param group of the turn's namespace
    /// @return whether the session is known now, or was and is over
    boolean update(int group, SessionTurn turn, RequestLabel label) {
        if (label.session() == 0 || label.turn() == 0 || turn.size() == 0) {
            return false;
        }
        LastTurn before = replaceTurn(group, turn, label);
        if (before != null && before.turn < label.turn()) {
            count(turn.releaseDropped(before.position));
        }
        return true;
    }

    /// Blocks and objects that became next victims so far.
    synchronized long released() {
        return released;
    }

    /// Sessions that are known.
    synchronized long sessions() {
        return groups.values().stream()
                .mapToLong(group -> group.sessions.size())
                .sum();
    }

    private synchronized void count(int left) {
        released += left;
    }

    private synchronized @Nullable LastTurn replaceTurn(int number, SessionTurn turn, RequestLabel label) {
        Group group = groups.computeIfAbsent(number, _ -> new Group());
        moveToGroup(turn.namespace(), number, group);
        Session session = new Session(turn.namespace(), label.session());
        LastTurn before = group.sessions.get(session);
        if (before != null && before.turn > label.turn()) {
            return null;
        }
        if (before != null) {
            group.sessions.remove(session);
            group.charge -= before.charge();
        }
        if (!label.last()) {
            LastTurn lastTurn = new LastTurn(label.turn(), turn.copyOfEnd());
            group.sessions.put(session, lastTurn);
            group.charge += lastTurn.charge();
            evictOldest(group);
        }
        return before;
    }

    /// A namespace is of a group, and may have been of another before: its sessions go along.
    private void moveToGroup(Namespace namespace, int number, Group group) {
        Integer before = groupOf.put(namespace, number);
        Group old = before == null || before == number ? null : groups.get(before);
        if (old == null) {
            return;
        }
        for (Iterator<Map.Entry<Session, LastTurn>> all =
                        old.sessions.entrySet().iterator();
                all.hasNext(); ) {
            Map.Entry<Session, LastTurn> each = all.next();
            if (each.getKey().namespace.equals(namespace)) {
                all.remove();
                old.charge -= each.getValue().charge();
                group.sessions.put(each.getKey(), each.getValue());
                group.charge += each.getValue().charge();
            }
        }
        evictOldest(group);
    }

    private static void evictOldest(Group group) {
        Iterator<LastTurn> oldest = group.sessions.values().iterator();
        while (group.charge > ChainSuffixes.MAX_BLOCKS) {
            group.charge -= oldest.next().charge();
            oldest.remove();
        }
    }

    /// End of a chain, or list of objects, that a session has reached with one of its turns.
    sealed interface SessionTurn {

        /// Blocks or objects of a turn that are kept for the next one.
        int MAX_KEPT = 1024;

        Namespace namespace();

        /// Blocks or objects.
        int size();

        /// The end of it, with no memory shared with what it was made of.
        SessionTurn copyOfEnd();

        /// Lets go what an earlier turn had and this one has not; of blocks, but for what others have
        /// gone on from.
        ///
        /// @return of how many blocks or objects
        int releaseDropped(SessionTurn before);

        /// A chain of blocks.
        ///
        /// @param first the block of the session's chain that this one begins with
        record Blocks(HintApplier hintApplier, BlockChain chain, int first) implements SessionTurn {

            @Override
            public Namespace namespace() {
                return chain.namespace();
            }

            @Override
            public int size() {
                return chain.length();
            }

            @Override
            public SessionTurn copyOfEnd() {
                int from = Math.max(0, chain.length() - MAX_KEPT);
                return new Blocks(hintApplier, ChainSuffixes.of(chain, from), first + from);
            }

            @Override
            public int releaseDropped(SessionTurn before) {
                return before instanceof Blocks blocks ? hintApplier.release(blocks.chain, blocks.keptBy(this)) : 0;
            }

            /// Leading blocks that another one has too.
            private int keptBy(Blocks later) {
                int end = Math.min(chain.length(), later.chain.length() - first);
                int index = 0;
                while (index < end && chain.key(index).equals(later.chain.key(first + index))) {
                    index++;
                }
                return index;
            }
        }

        /// Objects, in the order in which they are read.
        record Objects(HintApplier forecast, NamespaceEntry entry, List<BlockKey> keys) implements SessionTurn {

            @Override
            public Namespace namespace() {
                return entry.namespace();
            }

            @Override
            public int size() {
                return keys.size();
            }

            @Override
            public SessionTurn copyOfEnd() {
                int from = Math.max(0, keys.size() - MAX_KEPT);
                return new Objects(forecast, entry, List.copyOf(keys.subList(from, keys.size())));
            }

            @Override
            public int releaseDropped(SessionTurn before) {
                if (!(before instanceof Objects objects)) {
                    return 0;
                }
                Set<BlockKey> kept = new HashSet<>(keys);
                return forecast.demote(
                        entry,
                        objects.keys.stream().filter(key -> !kept.contains(key)).toList());
            }
        }
    }
}
