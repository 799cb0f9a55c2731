package io.kvcache.cluster;

import io.kvcache.transport.cluster.NodeInfo;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// The members of a group, what each has told about its server, and which of them hold their names.
///
/// A member first tells its server as *unsettled*. It settles when it knows all others and none has its name. Of
/// several
/// members with one name, one holds it: a settled one before an unsettled one; of two settled ones, which happens when
/// sides of a partition meet, the one with the higher incarnation; of two unsettled ones, the one that has been in the
/// group for longer. All members see the same order and the same hellos, so they agree.
///
/// **Threads.** One at a time.
///
/// @param <A> address of a member, another one after each restart
final class MemberTable<A> {

    /// Members that have left and may come back, at the end of a partition; what they told then holds until they tell
    /// something newer. With 1 KiB each, this is 1 MiB.
    private static final int MAX_HELLOS = 1024;

    private final A own;
    private final Map<A, MemberHello> hellos = new LinkedHashMap<>();
    private List<A> members = List.of();

    MemberTable(A own, MemberHello hello) {
        this.own = own;
        hellos.put(own, hello);
    }

    /// Returns what this server tells.
    MemberHello ownHello() {
        return Objects.requireNonNull(hellos.get(own));
    }

    /// Changes what this server tells.
    void tell(NodeInfo node, boolean settled) {
        MemberHello before = ownHello();
        hellos.put(own, new MemberHello(node, settled, before.revision() + 1, before.secret()));
    }

    /// The group has other members.
    ///
    /// @param present in the order in which they joined
    /// @return those who have not been members before, this one excepted
    List<A> onMembers(List<A> present) {
        List<A> added = new ArrayList<>(present);
        added.removeAll(members);
        added.remove(own);
        members = List.copyOf(present);
        forgetOldest();
        return added;
    }

    private void forgetOldest() {
        List<A> absent = new ArrayList<>(hellos.keySet());
        absent.removeAll(members);
        absent.remove(own);
        int surplus = Math.min(absent.size(), hellos.size() - MAX_HELLOS);
        for (int i = 0; i < surplus; i++) {
            hellos.remove(absent.get(i));
        }
    }

    /// A member tells about its server.
    void onHello(A from, MemberHello hello) {
        MemberHello known = hellos.get(from);
        if (!from.equals(own) && (known == null || known.revision() < hello.revision())) {
            hellos.put(from, hello);
        }
    }

    /// Returns whether all members have told about their servers.
    boolean isComplete() {
        return hellos.keySet().containsAll(members);
    }

    /// Returns the server that a member has told about, or null if it has not.
    @Nullable
    NodeInfo node(A member) {
        MemberHello hello = hellos.get(member);
        return hello == null ? null : hello.node();
    }

    /// Returns the secret that the settled holder of a name has told, or null.
    @Nullable
    String secretOf(String name) {
        A holder = holders().get(name);
        MemberHello hello = holder == null ? null : hellos.get(holder);
        return hello == null || !hello.settled() ? null : hello.secret();
    }

    /// Returns the other server that holds this one's name, or null.
    @Nullable
    NodeInfo rival() {
        A holder = holders().get(ownHello().node().name());
        return holder == null || holder.equals(own) ? null : node(holder);
    }

    /// Returns the settled servers that hold their names, in the order in which they joined.
    List<NodeInfo> present() {
        return holders().values().stream()
                .map(holder -> Objects.requireNonNull(hellos.get(holder)))
                .filter(MemberHello::settled)
                .map(MemberHello::node)
                .toList();
    }

    private Map<String, A> holders() {
        Map<String, A> holders = new LinkedHashMap<>();
        for (A member : members) {
            MemberHello hello = hellos.get(member);
            if (hello != null) {
                holders.merge(hello.node().name(), member, this::holder);
            }
        }
        return holders;
    }

    private A holder(A earlier, A later) {
        MemberHello one = Objects.requireNonNull(hellos.get(earlier));
        MemberHello other = Objects.requireNonNull(hellos.get(later));
        if (!other.settled()) {
            return earlier;
        }
        return !one.settled() || other.node().incarnation() > one.node().incarnation() ? later : earlier;
    }
}
