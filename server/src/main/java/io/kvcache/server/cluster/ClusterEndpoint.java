package io.kvcache.server.cluster;

import io.kvcache.cluster.ViewKeeper;
import io.kvcache.server.cluster.ClusterMember.DrainOutcome;
import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// `/v1/cluster`: the cluster as this server sees it. `/v1/cluster/drain` drains this server, and lets it serve
/// again.
public final class ClusterEndpoint implements HttpEndpoint {

    private static final String PATH = "/v1/cluster";
    private static final String DRAIN_PATH = PATH + "/drain";
    private static final String LOAD_PATH = PATH + "/load";

    private final @Nullable ClusterMember member;

    /// @param member null for a server that is in no cluster
    public ClusterEndpoint(@Nullable ClusterMember member) {
        this.member = member;
    }

    @Override
    public List<String> paths() {
        return List.of(PATH, DRAIN_PATH, LOAD_PATH);
    }

    @Override
    public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
        if (!paths().contains(path)) {
            return null;
        }
        ClusterMember here = member;
        if (here == null) {
            return ProblemDetails.withType(
                            HttpResponseStatus.NOT_FOUND,
                            "no-cluster",
                            "this server is in no cluster; cluster.name and cluster.listen in its settings make it"
                                    + " join one")
                    .toHandler();
        }
        return switch (path) {
            case DRAIN_PATH -> drainHandler(request, here);
            case LOAD_PATH -> loadHandler(request, here);
            default -> viewHandler(request, here);
        };
    }

    /// On a thread of its own, as the other servers are asked.
    private static HttpRequestHandler loadHandler(HttpRequest request, ClusterMember here) {
        return request.method().name().equals("GET")
                ? (HttpRequestHandler.BodylessHandler) out -> Thread.ofVirtual().start(() -> {
                    Map<String, Object> load = Map.of("servers", here.load());
                    out.sendLater(() -> out.sendJson(HttpResponseStatus.OK, load), () -> {});
                })
                : HttpResponder.methodNotAllowed(request, "GET");
    }

    private static HttpRequestHandler viewHandler(HttpRequest request, ClusterMember here) {
        return request.method().name().equals("GET")
                ? (HttpRequestHandler.BodylessHandler) out -> out.sendJson(HttpResponseStatus.OK, ClusterJson.of(here))
                : HttpResponder.methodNotAllowed(request, "GET");
    }

    private static HttpRequestHandler drainHandler(HttpRequest request, ClusterMember here) {
        boolean force = new QueryStringDecoder(request.uri())
                .parameters()
                .getOrDefault("force", List.of())
                .contains("true");
        return switch (request.method().name()) {
            case "GET" ->
                (HttpRequestHandler.BodylessHandler) out -> out.sendJson(HttpResponseStatus.OK, DrainJson.of(here));
            case "POST" -> changeHandler(here, () -> here.drainForOperator(force), HttpResponseStatus.ACCEPTED);
            case "DELETE" -> changeHandler(here, here::serveAgain, HttpResponseStatus.OK);
            default -> HttpResponder.methodNotAllowed(request, "GET, POST, DELETE");
        };
    }

    /// On a thread of its own, as telling all servers may take a while.
    private static HttpRequestHandler changeHandler(
            ClusterMember here, Supplier<DrainOutcome> change, HttpResponseStatus accepted) {
        return (HttpRequestHandler.BodylessHandler) out -> Thread.ofVirtual().start(() -> {
            DrainOutcome outcome = change.get();
            out.sendLater(() -> answer(here, outcome, accepted, out), () -> {});
        });
    }

    private static void answer(
            ClusterMember here, DrainOutcome outcome, HttpResponseStatus accepted, HttpResponder out) {
        switch (outcome) {
            case ACCEPTED -> out.sendJson(accepted, DrainJson.of(here));
            case JOINING ->
                out.sendProblem(conflict("joining", "this server still joins the cluster; wait until it serves"));
            case STOPPING -> out.sendProblem(conflict("stopping", "this server stops already"));
            case ONLY_SERVER ->
                out.sendProblem(conflict(
                        "only-server",
                        "this is the only server of the cluster that serves, so no server would own anything;"
                                + " start another one first, or drain it all the same with --force (force=true"
                                + " in the query)"));
        }
    }

    private static ProblemDetails conflict(String type, String detail) {
        return ProblemDetails.withType(HttpResponseStatus.CONFLICT, type, detail);
    }

    /// A drain.
    ///
    /// @param node the server
    /// @param state of it: joining, serving or draining
    /// @param othersServing how many other servers may own what this one had
    /// @param handover how far it has given it to them
    private record DrainJson(String node, String state, long othersServing, DrainHandover.Progress handover) {

        static DrainJson of(ClusterMember here) {
            return new DrainJson(
                    here.node(),
                    here.state().name().toLowerCase(Locale.ROOT),
                    here.views().view().serving().stream()
                            .filter(server -> !server.name().equals(here.node()))
                            .count(),
                    here.drainProgress());
        }
    }

    /// The page.
    ///
    /// @param cluster its name
    /// @param node the server that was asked
    /// @param state of it: joining, serving or draining
    /// @param notServing why it does not serve, as `/health/ready` says it; empty when it serves
    /// @param epoch number of its view
    /// @param digest the same at servers that see the same, in hexadecimal
    /// @param handoverBlocks that it has fetched from their former owners
    /// @param copiedBlocks that it has fetched as copies of what other servers own
    /// @param givenValues that it has given to the servers that own them
    /// @param left servers that have left within the last hour and are not back
    private record ClusterJson(
            String cluster,
            String node,
            String state,
            String notServing,
            long epoch,
            String digest,
            long handoverBlocks,
            long copiedBlocks,
            long givenValues,
            List<NodeJson> nodes,
            List<LeftJson> left) {

        static ClusterJson of(ClusterMember here) {
            String node = here.node();
            ClusterView view = here.views().view();
            NodeInfo own = view.node(node);
            double serving = view.serving().stream()
                    .mapToDouble(each -> each.node().weight())
                    .sum();
            return new ClusterJson(
                    view.cluster(),
                    node,
                    here.state().name().toLowerCase(Locale.ROOT),
                    here.notServingReason(),
                    view.epoch(),
                    String.format(Locale.ROOT, "%016x", view.digest()),
                    here.handoverBlocks(),
                    here.copiedBlocks(),
                    here.givenValues(),
                    view.nodes().stream()
                            .map(each -> NodeJson.of(
                                    each, serving, own == null ? 0 : own.drops(), here.differencesAt(each.name())))
                            .toList(),
                    here.views().left().stream().map(LeftJson::of).toList());
        }
    }

    /// A server that has left.
    ///
    /// @param drained whether it had drained before, as a server does that is stopped
    private record LeftJson(String name, long secondsAgo, boolean drained) {

        static LeftJson of(ViewKeeper.LeftServer left) {
            return new LeftJson(left.name(), left.ago().toSeconds(), left.drained());
        }
    }

    /// A server.
    ///
    /// @param state joining, serving or draining
    /// @param incarnation when its process started, in ISO 8601
    /// @param address of its transport
    /// @param valueAddress of its listener for clients of Redis Cluster; empty without one
    /// @param sharePercent of the groups of blocks that it owns, on average
    /// @param dropsAgree whether it has applied the same drops as the server that was asked
    /// @param configDiffers settings that should be the same and are not; null while it has not told
    private record NodeJson(
            String name,
            String state,
            String incarnation,
            String address,
            String valueAddress,
            double weight,
            double sharePercent,
            String zone,
            String host,
            String version,
            boolean dropsAgree,
            @Nullable List<String> configDiffers) {

        static NodeJson of(NodeInfo info, double servingWeight, long drops, @Nullable List<String> differences) {
            double share = info.state() == NodeState.SERVING ? info.node().weight() / servingWeight : 0;
            return new NodeJson(
                    info.name(),
                    info.state().name().toLowerCase(Locale.ROOT),
                    Instant.ofEpochMilli(info.incarnation()).toString(),
                    info.address(),
                    info.valueAddress(),
                    info.node().weight(),
                    Math.round(share * 10_000) / 100.0,
                    info.node().zone(),
                    info.node().host(),
                    info.version(),
                    info.drops() == drops,
                    differences);
        }
    }
}
