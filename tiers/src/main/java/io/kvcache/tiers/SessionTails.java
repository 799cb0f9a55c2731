package io.kvcache.tiers;

import io.kvcache.core.RequestLabel;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.Forecast;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Where sessions have come to, so that what a turn leaves behind of the one before it can be let
/// go.
///
/// Of each session the last 1,024 blocks are kept; of each group of namespaces the sessions that
/// were labelled last.
///
/// **Threads.** Any.
final class SessionTails {

    private static final int MOST_OF_A_SESSION = 1024;

    private final Forecast forecast;
    private final Map<Integer, Group> groups = new HashMap<>();
    private final Map<Namespace, Integer> groupOf = new HashMap<>();
    private long released;

    private record Session(Namespace namespace, long number) {}

    /// @param first the block of the chain that the keys begin with
    private record Tail(int turn, int first, BlockChain keys) {

        /// Leading blocks of these that a chain goes on from.
        int kept(BlockChain chain) {
            int end = Math.min(keys.length(), chain.length() - first);
            int index = 0;
            while (index < end && keys.key(index).equals(chain.key(first + index))) {
                index++;
            }
            return index;
        }
    }

    /// The oldest label first.
    private static final class Group {
        final Map<Session, Tail> sessions = new LinkedHashMap<>();
        int charge;
    }

    SessionTails(Forecast forecast) {
        this.forecast = forecast;
    }

    /// A session has come to a chain: what it has left behind is let go.
    ///
    /// @param group of the chain's namespace
    /// @return whether the session is known now, or was and is over
    boolean take(int group, BlockChain chain, RequestLabel label) {
        if (label.session() == 0 || label.turn() == 0 || chain.length() == 0) {
            return false;
        }
        Tail before = exchange(group, chain, label);
        if (before != null && before.turn < label.turn()) {
            count(forecast.release(before.keys, before.kept(chain)));
        }
        return true;
    }

    /// Blocks that became next victims so far.
    synchronized long released() {
        return released;
    }

    /// Sessions that are known.
    synchronized long sessions() {
        return groups.values().stream()
                .mapToLong(group -> group.sessions.size())
                .sum();
    }

    private synchronized void count(int blocks) {
        released += blocks;
    }

    private synchronized @Nullable Tail exchange(int number, BlockChain chain, RequestLabel label) {
        Group group = groups.computeIfAbsent(number, _ -> new Group());
        regroup(chain.namespace(), number, group);
        Session session = new Session(chain.namespace(), label.session());
        Tail before = group.sessions.get(session);
        if (before != null && before.turn > label.turn()) {
            return null;
        }
        if (before != null) {
            group.sessions.remove(session);
            group.charge -= Tails.charge(before.keys.length());
        }
        if (!label.last()) {
            int first = Math.max(0, chain.length() - MOST_OF_A_SESSION);
            Tail tail = new Tail(label.turn(), first, Tails.of(chain, first));
            group.sessions.put(session, tail);
            group.charge += Tails.charge(tail.keys.length());
            shrink(group);
        }
        return before;
    }

    /// A namespace is of a group, and may have been of another before: its sessions go along.
    private void regroup(Namespace namespace, int number, Group group) {
        Integer before = groupOf.put(namespace, number);
        Group old = before == null || before == number ? null : groups.get(before);
        if (old == null) {
            return;
        }
        for (Iterator<Map.Entry<Session, Tail>> all = old.sessions.entrySet().iterator(); all.hasNext(); ) {
            Map.Entry<Session, Tail> each = all.next();
            if (each.getKey().namespace.equals(namespace)) {
                int charge = Tails.charge(each.getValue().keys.length());
                all.remove();
                old.charge -= charge;
                group.sessions.put(each.getKey(), each.getValue());
                group.charge += charge;
            }
        }
        shrink(group);
    }

    private static void shrink(Group group) {
        Iterator<Tail> oldest = group.sessions.values().iterator();
        while (group.charge > Tails.MOST_BLOCKS) {
            group.charge -= Tails.charge(oldest.next().keys.length());
            oldest.remove();
        }
    }
}
