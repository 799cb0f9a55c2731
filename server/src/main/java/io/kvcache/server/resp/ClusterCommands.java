package io.kvcache.server.resp;

import io.kvcache.core.hash.Sha256;
import io.kvcache.server.keyspace.HashSlotOwnership;
import io.kvcache.server.keyspace.HashSlotOwnership.SlotMap;
import io.kvcache.server.resp.HashSlotRedirector.ValueEndpoint;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.HashSlots;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// CLUSTER, READONLY, READWRITE and ASKING: how clients of Redis Cluster learn which server owns which slots.
///
/// Only servers with an address for such clients are told. The others' slots are missing then. Each server stands for
/// a shard without replicas.
final class ClusterCommands {

    private static final int NODE_ID_DIGITS = 40;

    private static final String SERVED =
            "COUNTKEYSINSLOT is not among them; CLUSTER takes SLOTS, SHARDS, NODES, INFO, MYID, MYSHARDID, KEYSLOT";

    private static final Set<String> OF_TOPOLOGY = Set.of(
            "ADDSLOTS",
            "ADDSLOTSRANGE",
            "BUMPEPOCH",
            "DELSLOTS",
            "DELSLOTSRANGE",
            "FAILOVER",
            "FLUSHSLOTS",
            "FORGET",
            "MEET",
            "REPLICATE",
            "RESET",
            "SAVECONFIG",
            "SET-CONFIG-EPOCH",
            "SETSLOT");

    private final HashSlotOwnership ownership;

    ClusterCommands(HashSlotOwnership ownership) {
        this.ownership = ownership;
    }

    List<CommandSpec> commands() {
        CommandSpec.ArgumentPositions none = CommandSpec.ArgumentPositions.NONE;
        return List.of(
                CommandSpec.of("CLUSTER", -2, "loading stale", none, this::cluster),
                CommandSpec.of("READONLY", 1, "loading stale fast", none, (session, request, out) -> out.writeOk()),
                CommandSpec.of("READWRITE", 1, "loading stale fast", none, (session, request, out) -> out.writeOk()),
                CommandSpec.of("ASKING", 1, "fast", none, (session, request, out) -> out.writeOk()));
    }

    private void cluster(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
        String sub = request.argumentUpperCase(1);
        if (OF_TOPOLOGY.contains(sub)) {
            throw new CommandException("ERR topology is managed by the server");
        }
        int arguments = sub.equals("KEYSLOT") ? 3 : 2;
        SlotMap map = ownership.map();
        switch (sub) {
            case "SLOTS", "SHARDS", "NODES", "INFO", "MYID", "MYSHARDID", "KEYSLOT" -> requireCount(request, arguments);
            default ->
                throw new CommandException("ERR unknown subcommand '" + request.argumentText(1) + "'. " + SERVED);
        }
        switch (sub) {
            case "SLOTS" -> slots(map, out);
            case "SHARDS" -> shards(map, out);
            case "NODES" -> out.writeVerbatim(nodes(map));
            case "INFO" -> out.writeVerbatim(info(map));
            case "KEYSLOT" -> out.writeInteger(HashSlots.of(request.argument(2)));
            default -> out.writeBulk(nodeId(ownership.node()));
        }
    }

    private static void requireCount(RespRequest request, int arguments) throws CommandException {
        if (request.count() != arguments) {
            throw new CommandException("ERR wrong number of arguments for 'cluster|"
                    + request.argumentText(1).toLowerCase(Locale.ROOT) + "' command");
        }
    }

    /// Returns 40 hexadecimal digits that stand for a name, the same at each server.
    static String nodeId(String name) {
        return HexFormat.of()
                .formatHex(Sha256.newDigest().digest(name.getBytes(StandardCharsets.UTF_8)))
                .substring(0, NODE_ID_DIGITS);
    }

    /// Adjacent slots of one owner.
    ///
    /// @param first slot
    /// @param last slot
    private record SlotRange(int first, int last, NodeInfo owner) {

        @Override
        public String toString() {
            return first == last ? Integer.toString(first) : first + "-" + last;
        }
    }

    private static List<SlotRange> ranges(SlotMap map) {
        List<SlotRange> ranges = new ArrayList<>();
        int first = 0;
        for (int end = HashSlots.RUN_SLOTS; end <= HashSlots.COUNT; end += HashSlots.RUN_SLOTS) {
            NodeInfo owner = map.owner(first);
            if (end == HashSlots.COUNT || !isSame(owner, map.owner(end))) {
                if (owner != null && !owner.valueAddress().isEmpty()) {
                    ranges.add(new SlotRange(first, end - 1, owner));
                }
                first = end;
            }
        }
        return ranges;
    }

    private static boolean isSame(@Nullable NodeInfo one, @Nullable NodeInfo other) {
        return Objects.equals(one == null ? null : one.name(), other == null ? null : other.name());
    }

    private static Map<String, List<SlotRange>> rangesByNode(SlotMap map) {
        return ranges(map).stream()
                .collect(Collectors.groupingBy(range -> range.owner().name(), TreeMap::new, Collectors.toList()));
    }

    private static List<NodeInfo> reachable(SlotMap map) {
        return map.view().nodes().stream()
                .filter(node -> !node.valueAddress().isEmpty())
                .toList();
    }

    private static void slots(SlotMap map, RespEncoder out) {
        List<SlotRange> ranges = ranges(map);
        out.beginArray(ranges.size());
        for (SlotRange range : ranges) {
            ValueEndpoint endpoint = ValueEndpoint.of(range.owner());
            out.beginArray(3);
            out.writeInteger(range.first());
            out.writeInteger(range.last());
            out.beginArray(4);
            out.writeBulk(endpoint.host());
            out.writeInteger(endpoint.port());
            out.writeBulk(nodeId(range.owner().name()));
            out.beginArray(0);
        }
    }

    private static void shards(SlotMap map, RespEncoder out) {
        Map<String, List<SlotRange>> ranges = rangesByNode(map);
        List<NodeInfo> nodes = reachable(map);
        out.beginArray(nodes.size());
        for (NodeInfo node : nodes) {
            List<SlotRange> own = ranges.getOrDefault(node.name(), List.of());
            out.beginMap(2);
            out.writeBulk("slots");
            out.beginArray(2 * own.size());
            own.forEach(range -> {
                out.writeInteger(range.first());
                out.writeInteger(range.last());
            });
            out.writeBulk("nodes");
            out.beginArray(1);
            shardNode(node, out);
        }
    }

    private static void shardNode(NodeInfo node, RespEncoder out) {
        ValueEndpoint endpoint = ValueEndpoint.of(node);
        out.beginMap(7);
        out.writeBulk("id");
        out.writeBulk(nodeId(node.name()));
        out.writeBulk("port");
        out.writeInteger(endpoint.port());
        out.writeBulk("ip");
        out.writeBulk(endpoint.host());
        out.writeBulk("endpoint");
        out.writeBulk(endpoint.host());
        out.writeBulk("role");
        out.writeBulk("master");
        out.writeBulk("replication-offset");
        out.writeInteger(0);
        out.writeBulk("health");
        out.writeBulk(node.state() == NodeState.JOINING ? "loading" : "online");
    }

    /// A line for each server: id, address, flags, master, last ping, last pong, epoch, link, slots.
    private String nodes(SlotMap map) {
        Map<String, List<SlotRange>> ranges = rangesByNode(map);
        StringBuilder text = new StringBuilder();
        for (NodeInfo node : reachable(map)) {
            text.append(nodeId(node.name()))
                    .append(' ')
                    .append(ValueEndpoint.of(node))
                    .append("@0 ")
                    .append(node.name().equals(ownership.node()) ? "myself,master" : "master")
                    .append(" - 0 0 ")
                    .append(map.view().epoch())
                    .append(" connected");
            ranges.getOrDefault(node.name(), List.of())
                    .forEach(range -> text.append(' ').append(range));
            text.append('\n');
        }
        return text.toString();
    }

    private static String info(SlotMap map) {
        ClusterView view = map.view();
        int assigned = ranges(map).stream()
                .mapToInt(range -> range.last() - range.first() + 1)
                .sum();
        return String.join(
                        "\r\n",
                        "cluster_enabled:1",
                        "cluster_state:" + (assigned == HashSlots.COUNT ? "ok" : "fail"),
                        "cluster_slots_assigned:" + assigned,
                        "cluster_slots_ok:" + assigned,
                        "cluster_slots_pfail:0",
                        "cluster_slots_fail:0",
                        "cluster_known_nodes:" + view.nodes().size(),
                        "cluster_size:" + view.serving().size(),
                        "cluster_current_epoch:" + view.epoch(),
                        "cluster_my_epoch:" + view.epoch(),
                        "cluster_stats_messages_sent:0",
                        "cluster_stats_messages_received:0")
                + "\r\n";
    }
}
