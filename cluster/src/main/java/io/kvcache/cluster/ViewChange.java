package io.kvcache.cluster;

import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/// What differs between two views of a server, for its log.
///
/// @param merged whether two sides of a partition have met again
record ViewChange(ClusterView before, ClusterView after, boolean merged) {

    /// Returns the servers that the earlier view has not.
    List<NodeInfo> came() {
        return after.nodes().stream()
                .filter(node -> before.node(node.name()) == null)
                .toList();
    }

    /// Returns the servers that only the earlier view has.
    List<NodeInfo> gone() {
        return before.nodes().stream()
                .filter(node -> after.node(node.name()) == null)
                .toList();
    }

    /// Returns whether a server is gone that did not say so before, or two sides have met again.
    boolean isTrouble() {
        return merged || gone().stream().anyMatch(node -> node.state() != NodeState.DRAINING);
    }

    private List<NodeInfo> present(Predicate<NodeInfo> filter) {
        return after.nodes().stream()
                .filter(node -> before.node(node.name()) != null)
                .filter(filter)
                .toList();
    }

    private boolean hasRestarted(NodeInfo node) {
        return Objects.requireNonNull(before.node(node.name())).incarnation() != node.incarnation();
    }

    private boolean hasChanged(NodeInfo node) {
        return !hasRestarted(node) && !node.equals(before.node(node.name()));
    }

    /// Returns whether nothing differs but what servers have dropped, which is no news for the log.
    boolean isOfDropsAlone() {
        return !merged && !before.nodes().isEmpty() && before.digest() == after.digest();
    }

    /// Returns the share of groups whose owner is another one, 0 to 1.
    ///
    /// A server keeps a group if it scores highest by both views. A score is weight over an exponential variate, so
    /// server `i` does with probability `1 / sum over j of max(w_j / w_i, v_j / v_i)`. Its weights are `w` before
    /// and `v` after, and 0 for servers that own nothing.
    double movedShare() {
        if (before.serving().isEmpty() || after.serving().isEmpty()) {
            return 0;
        }
        double kept = 0;
        for (NodeInfo node : after.serving()) {
            double weight = weight(before, node.name());
            if (weight > 0) {
                kept += keptShare(weight, node.node().weight());
            }
        }
        return Math.max(0, 1 - kept);
    }

    private double keptShare(double weightBefore, double weightAfter) {
        double sum = 0;
        for (NodeInfo node : before.serving()) {
            ClusterNode other = node.node();
            sum += Math.max(other.weight() / weightBefore, weight(after, other.name()) / weightAfter);
        }
        for (NodeInfo node : after.serving()) {
            if (weight(before, node.name()) == 0) {
                sum += node.node().weight() / weightAfter;
            }
        }
        return 1 / sum;
    }

    private static double weight(ClusterView view, String name) {
        NodeInfo node = view.node(name);
        return node == null || node.state() != NodeState.SERVING
                ? 0
                : node.node().weight();
    }

    /// The line of the log: `view 5: 4 serve, 1 joins (kv-3); came: kv-3; moved 20 % of groups`.
    @Override
    public String toString() {
        List<String> parts = new ArrayList<>();
        parts.add("view " + after.epoch() + ": " + states());
        add(parts, "came: ", came());
        add(parts, "gone: ", gone());
        add(parts, "restarted: ", present(this::hasRestarted));
        add(parts, "changed: ", present(this::hasChanged));
        if (merged) {
            parts.add("two sides of a partition met again, and forget values that may change");
        }
        double moved = 100 * movedShare();
        if (moved > 0.5e-6) {
            parts.add(
                    moved < 1 ? "moved less than 1 % of groups" : "moved %s %% of groups".formatted(Math.round(moved)));
        }
        return String.join("; ", parts);
    }

    private String states() {
        String text = after.serving().size() + " serve";
        text += states(NodeState.JOINING, "joins", "join");
        return text + states(NodeState.DRAINING, "drains", "drain");
    }

    private String states(NodeState state, String one, String more) {
        List<NodeInfo> nodes =
                after.nodes().stream().filter(node -> node.state() == state).toList();
        return nodes.isEmpty()
                ? ""
                : ", %s %s (%s)".formatted(nodes.size(), nodes.size() == 1 ? one : more, names(nodes));
    }

    private static void add(List<String> parts, String label, List<NodeInfo> nodes) {
        if (!nodes.isEmpty()) {
            parts.add(label + names(nodes));
        }
    }

    private static String names(List<NodeInfo> nodes) {
        return nodes.stream().map(NodeInfo::name).collect(Collectors.joining(", "));
    }
}
