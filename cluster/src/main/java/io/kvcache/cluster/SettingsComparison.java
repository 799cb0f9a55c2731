package io.kvcache.cluster;

import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.ProtocolException;
import java.lang.System.Logger.Level;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Compares the settings that should be the same at all servers of a cluster, and warns of those that differ.
///
/// Each server broadcasts a digest of each of these settings when another server has appeared, and now and then:
/// `u8 2, i64 incarnation, u16 settings`, and for each `text name, i64 digest`. A setting that only one of two servers
/// tells is not compared, as one of them may be of another version.
///
/// **Ownership.** Hears the messages of its views from the start.
///
/// **Threads.** [#step] by one thread, all else by any.
public final class SettingsComparison {

    private static final System.Logger LOG = System.getLogger(SettingsComparison.class.getName());

    /// First byte of a message. The other one is that of [DropExchange].
    private static final int DIGESTS = 2;

    /// When the digests are told after a server has appeared. Messages that arrive while it joins are lost.
    private static final List<Long> TELL_AFTER_NANOS =
            List.of(0L, TimeUnit.SECONDS.toNanos(2), TimeUnit.SECONDS.toNanos(10));

    /// And then from time to time: a server that stood still may not know that the others had it for gone, and forgot
    /// what it told.
    private static final long PERIOD_NANOS = TimeUnit.SECONDS.toNanos(20);

    private final ViewKeeper views;
    private final SortedMap<String, Long> own;
    private final Map<String, Told> told = new ConcurrentHashMap<>();

    // The rest belongs to the thread of [#step].

    private Set<Member> members = Set.of();
    private long changedNanos;
    private int times;
    private Set<Difference> warned = Set.of();

    private record Member(String name, long incarnation) {}

    private record Told(long incarnation, Map<String, Long> digests) {}

    private record Difference(Member server, String setting) {}

    /// @param own digests of this server's settings by their names, 30 KiB at most
    public SettingsComparison(ViewKeeper views, SortedMap<String, Long> own) {
        this.views = views;
        this.own = new TreeMap<>(own);
        views.listen(this::onView);
        views.listenToMessages(DIGESTS, this::onMessage);
    }

    private void onView(ClusterView view) {
        told.keySet().removeIf(server -> view.node(server) == null);
    }

    private void onMessage(String from, BodyReader body) throws ProtocolException {
        long incarnation = body.i64("incarnation");
        int count = body.u16("settings");
        Map<String, Long> digests = new HashMap<>();
        for (int i = 0; i < count; i++) {
            digests.put(body.text("name"), body.i64("digest"));
        }
        told.put(from, new Told(incarnation, digests));
    }

    /// Tells this server's settings if it is time to, and warns of new differences.
    ///
    /// @param nowNanos nanoseconds since some fixed moment
    public void step(long nowNanos) {
        Set<Member> now = views.view().nodes().stream()
                .map(node -> new Member(node.name(), node.incarnation()))
                .collect(Collectors.toSet());
        if (!members.containsAll(now)) {
            times = 0;
            changedNanos = nowNanos;
        }
        members = now;
        if (now.size() > 1 && nowNanos - changedNanos >= tellAfterNanos()) {
            times++;
            views.broadcast(message());
        }
        warnOfNew();
    }

    private long tellAfterNanos() {
        int periods = times - TELL_AFTER_NANOS.size() + 1;
        return periods <= 0 ? TELL_AFTER_NANOS.get(times) : TELL_AFTER_NANOS.getLast() + periods * PERIOD_NANOS;
    }

    private byte[] message() {
        BodyWriter body =
                new BodyWriter(1024).u8(DIGESTS).i64(views.self().incarnation()).u16(own.size());
        own.forEach((name, digest) -> body.text(name).i64(digest));
        return body.toBytes();
    }

    private void warnOfNew() {
        Set<Difference> differences = new HashSet<>();
        for (NodeInfo server : views.view().nodes()) {
            List<String> settings = differencesAt(server.name());
            if (settings != null) {
                Member member = new Member(server.name(), server.incarnation());
                settings.forEach(setting -> differences.add(new Difference(member, setting)));
            }
        }
        differences.stream()
                .filter(difference -> !warned.contains(difference))
                .map(difference -> difference.setting + " differs at " + difference.server.name)
                .sorted()
                .forEach(line -> LOG.log(Level.WARNING, line));
        warned = differences;
    }

    /// Returns the settings that differ at a server, by name; null while it has told none.
    public @Nullable List<String> differencesAt(String server) {
        NodeInfo node = views.view().node(server);
        if (node == null) {
            return null;
        }
        if (server.equals(views.self().name())) {
            return List.of();
        }
        Told others = told.get(server);
        return others == null || others.incarnation != node.incarnation()
                ? null
                : own.entrySet().stream()
                        .filter(setting -> others.digests.containsKey(setting.getKey())
                                && !setting.getValue().equals(others.digests.get(setting.getKey())))
                        .map(Map.Entry::getKey)
                        .toList();
    }
}
