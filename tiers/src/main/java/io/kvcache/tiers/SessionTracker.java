package io.kvcache.tiers;

import io.kvcache.core.RequestLabel;
import io.kvcache.core.identity.Namespace;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Where sessions have come to, so that what a turn leaves behind of the one before it can be let
/// go.
///
/// Of each session the last 1,024 blocks or objects are kept; of each group of namespaces the
/// sessions that were labelled last.
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
}
