package io.kvcache.server.cluster;

import io.kvcache.cluster.ClusterSecret;
import io.kvcache.server.config.ClusterConfig;
import io.kvcache.server.config.ClusterConfig.ClusterAddress;
import io.kvcache.server.config.HostResources.HostName;
import io.kvcache.server.config.ServerConfig;
import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.List;

/// Looks names up that a member of a cluster would use, before it starts. Connects to nothing.
public final class ClusterPreflight {

    private ClusterPreflight() {}

    /// Reads the certificates between servers, or their secret where there is one yet, and forgets them.
    ///
    /// @throws IOException when one cannot be used; the message names the setting and says why
    public static void checkFiles(ServerConfig server) throws IOException {
        if (server.cluster() != null && ClusterMember.openTls(server.cluster()) == null) {
            try {
                ClusterSecret.check(ClusterSecret.fileOfUser());
            } catch (IOException unusable) {
                throw ClusterMember.withoutSecret(unusable);
            }
        }
    }

    /// Returns what may keep a server with these settings from meeting the others; each begins with the setting's
    /// name. Names may be known later, as those of servers that have not started.
    public static List<String> findWarnings(ServerConfig server) {
        ClusterConfig cluster = server.cluster();
        List<String> warnings = new ArrayList<>();
        if (cluster == null) {
            return warnings;
        }
        for (ClusterAddress seed : cluster.seeds()) {
            if (!isKnown(seed)) {
                warnings.add("cluster.seeds names " + seed
                        + ", whose host is not known here; it is looked up again until it is");
            }
        }
        ClusterAddress dns = cluster.dns();
        if (dns != null && !isKnown(dns)) {
            warnings.add("cluster.dns is " + dns + ", which is not known here; the server is alone until it is");
        }
        if (cluster.advertise() == null && !cluster.listen().isLoopback() && listensEverywhere(server)) {
            warnings.addAll(findHostNameWarnings(server));
        }
        return warnings;
    }

    private static boolean isKnown(ClusterAddress place) {
        try {
            return place.resolve() != null;
        } catch (UnknownHostException unknown) {
            return false;
        }
    }

    private static boolean listensEverywhere(ServerConfig server) {
        return server.transport().socketAddress().getAddress().isAnyLocalAddress();
    }

    private static List<String> findHostNameWarnings(ServerConfig server) {
        String problem = HostNameCheck.run().problem();
        return problem.isEmpty()
                ? List.of()
                : List.of("transport.listen is " + server.transport().listen() + ", so clients get the host name "
                        + HostName.detect() + ", which " + problem + "; set cluster.advertise");
    }

    /// Whether other machines can reach this one by its host name, as far as this one can tell.
    ///
    /// @param address empty when the name is not known
    /// @param problem empty when there is none
    public record HostNameCheck(String name, String address, String problem) {

        /// Looks the host name up.
        public static HostNameCheck run() {
            String name = HostName.detect();
            try {
                InetAddress address = InetAddress.getByName(name);
                return new HostNameCheck(
                        name,
                        address.getHostAddress(),
                        address.isLoopbackAddress()
                                ? "is " + address.getHostAddress() + " here and may be unknown elsewhere"
                                : "");
            } catch (UnknownHostException unknown) {
                return new HostNameCheck(name, "", "is not known here");
            }
        }
    }
}
