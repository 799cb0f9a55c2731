package io.kvcache.cluster;

import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jgroups.Address;
import org.jgroups.conf.ClassConfigurator;
import org.jgroups.protocols.TCPPING;
import org.jgroups.util.Responses;

/// Finds members at the addresses that the seeds' names have now, as hosts of containers change theirs.
///
/// **Threads.** As JGroups has it.
final class SeedDiscovery extends TCPPING {

    private static final System.Logger LOG = System.getLogger(SeedDiscovery.class.getName());

    private final List<HostPort> seeds;
    private final boolean onlyLoopback;
    private final Set<String> reported = ConcurrentHashMap.newKeySet();

    /// @param onlyLoopback passes over seeds on other hosts, as the connections are not encrypted
    SeedDiscovery(List<HostPort> seeds, boolean onlyLoopback) {
        this.seeds = seeds;
        this.onlyLoopback = onlyLoopback;
        setId(ClassConfigurator.getProtocolId(TCPPING.class));
        initial_hosts_set_programmatically = true;
    }

    @Override
    public void findMembers(List<Address> members, boolean initial, Responses responses) {
        setInitialHosts(resolve());
        super.findMembers(members, initial, responses);
    }

    private List<InetSocketAddress> resolve() {
        Set<InetSocketAddress> found = new LinkedHashSet<>();
        seeds.forEach(seed -> found.addAll(resolve(seed)));
        return List.copyOf(found);
    }

    private List<InetSocketAddress> resolve(HostPort seed) {
        try {
            List<InetSocketAddress> addresses = seed.resolve();
            if (!onlyLoopback
                    || addresses.stream().allMatch(each -> each.getAddress().isLoopbackAddress())) {
                return addresses;
            }
            report(seed, "is on another host, which needs tls; it is not asked");
        } catch (UnknownHostException unknown) {
            report(seed, "has no address yet; it is looked up again");
        }
        return List.of();
    }

    /// Returns the index of the seed with this address, or -1.
    int indexOf(InetSocketAddress address) {
        for (int i = 0; i < seeds.size(); i++) {
            if (resolve(seeds.get(i)).contains(address)) {
                return i;
            }
        }
        return -1;
    }

    private void report(HostPort seed, String reason) {
        if (reported.add(seed.host() + reason)) {
            LOG.log(Level.WARNING, "seed " + seed.host() + " " + reason);
        }
    }
}
