package io.kvcache.server.cluster;

import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/// `/v1/cluster`: the cluster as this server sees it.
public final class ClusterEndpoint implements HttpEndpoint {

    private static final String PATH = "/v1/cluster";

    private final @Nullable ClusterMember member;

    /// @param member null for a server that is in no cluster
    public ClusterEndpoint(@Nullable ClusterMember member) {
        this.member = member;
    }

    @Override
    public List<String> paths() {
        return List.of(PATH);
    }

    @Override
    public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
        if (!path.equals(PATH)) {
            return null;
        }
        if (!request.method().name().equals("GET")) {
            return HttpResponder.methodNotAllowed(request, "GET");
        }
        ClusterMember here = member;
        return here == null
                ? ProblemDetails.withType(
                                HttpResponseStatus.NOT_FOUND,
                                "no-cluster",
                                "this server is in no cluster; cluster.name and cluster.listen in its settings make it"
                                        + " join one")
                        .toHandler()
                : (HttpRequestHandler.BodylessHandler) out -> out.sendJson(
                        HttpResponseStatus.OK,
                        ClusterJson.of(here.node(), here.views().view()));
    }

    /// The page.
    ///
    /// @param cluster its name
    /// @param node the server that was asked
    /// @param epoch number of its view
    /// @param digest the same at servers that see the same, in hexadecimal
    private record ClusterJson(String cluster, String node, long epoch, String digest, List<NodeJson> nodes) {

        static ClusterJson of(String node, ClusterView view) {
            NodeInfo own = view.node(node);
            double serving = view.serving().stream()
                    .mapToDouble(each -> each.node().weight())
                    .sum();
            return new ClusterJson(
                    view.cluster(),
                    node,
                    view.epoch(),
                    String.format(Locale.ROOT, "%016x", view.digest()),
                    view.nodes().stream()
                            .map(each -> NodeJson.of(each, serving, own == null ? 0 : own.drops()))
                            .toList());
        }
    }

    /// A server.
    ///
    /// @param state joining, serving or draining
    /// @param incarnation when its process started, in ISO 8601
    /// @param address of its transport
    /// @param sharePercent of the groups of blocks that it owns, on average
    /// @param dropsAgree whether it has applied the same drops as the server that was asked
    private record NodeJson(
            String name,
            String state,
            String incarnation,
            String address,
            double weight,
            double sharePercent,
            String zone,
            String host,
            String version,
            boolean dropsAgree) {

        static NodeJson of(NodeInfo info, double servingWeight, long drops) {
            double share = info.state() == NodeState.SERVING ? info.node().weight() / servingWeight : 0;
            return new NodeJson(
                    info.name(),
                    info.state().name().toLowerCase(Locale.ROOT),
                    Instant.ofEpochMilli(info.incarnation()).toString(),
                    info.address(),
                    info.node().weight(),
                    Math.round(share * 10_000) / 100.0,
                    info.node().zone(),
                    info.node().host(),
                    info.version(),
                    info.drops() == drops);
        }
    }
}
