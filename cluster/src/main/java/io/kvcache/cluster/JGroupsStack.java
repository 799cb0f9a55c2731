package io.kvcache.cluster;

import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.jgroups.Address;
import org.jgroups.protocols.FD_ALL3;
import org.jgroups.protocols.FRAG2;
import org.jgroups.protocols.MERGE3;
import org.jgroups.protocols.MFC;
import org.jgroups.protocols.TCP;
import org.jgroups.protocols.UFC;
import org.jgroups.protocols.UNICAST3;
import org.jgroups.protocols.VERIFY_SUSPECT2;
import org.jgroups.protocols.pbcast.GMS;
import org.jgroups.protocols.pbcast.NAKACK2;
import org.jgroups.protocols.pbcast.STABLE;
import org.jgroups.stack.Protocol;
import org.jgroups.util.UUID;

/// The protocols of JGroups that a membership consists of. All times follow from the failure timeout.
///
/// No FD_SOCK2: it opens a second port without TLS, and suspects members whose address has not arrived yet. A
/// connection that breaks makes TCP suspect the member, and VERIFY_SUSPECT2 asks it before it is out.
///
/// **First coordinator.** Of members that start at the same moment, the lowest address becomes coordinator and the
/// others join it. Members that do not know each other yet would choose different ones, and views would have to merge.
/// So addresses of listed seeds are lower than others, in the order of the list.
final class JGroupsStack {

    /// Most bytes that a peer may announce for a message. Bundles have at most 64,000.
    private static final int MAX_MESSAGE_BYTES = 256 << 10;

    private static final int STREAM_BYTES = 8 << 10;
    private static final int MAX_THREADS = 16;
    private static final int FRAGMENT_BYTES = 60_000;
    private static final long CREDIT_BYTES = 1_000_000;
    private static final long STABLE_MILLIS = 30_000;

    /// A join that is not answered in this time is tried again; the group is not left waiting for ever.
    private static final int MAX_JOIN_ATTEMPTS = 10;

    /// Bits of an address that are random; those above are the rank.
    private static final int RANDOM_BITS = 56;

    private static final int MAX_RANK = 127;

    private JGroupsStack() {}

    static List<Protocol> protocols(
            JGroupsMembership.Settings settings, InetSocketAddress listen, SeedDiscovery seeds) {
        long failure = settings.failureAfter().toMillis();
        return List.of(
                transport(settings, listen, failure),
                discovery(seeds),
                new MERGE3().setMinInterval(failure * 7 / 10).setMaxInterval(2 * failure),
                new FD_ALL3().setTimeout(failure).setInterval(failure / 3),
                new VERIFY_SUSPECT2().setTimeout(Math.clamp(failure / 6, 200, 1000)),
                new NAKACK2().useMcastXmit(false).logDiscardMessages(false),
                new UNICAST3(),
                new STABLE().setDesiredAverageGossip(STABLE_MILLIS).setMaxBytes(CREDIT_BYTES),
                new GMS()
                        .setJoinTimeout(Math.clamp(failure, 1000, 3000))
                        .setLeaveTimeout(1000)
                        .setMaxJoinAttempts(MAX_JOIN_ATTEMPTS)
                        .printLocalAddress(false),
                new UFC().setMaxCredits(CREDIT_BYTES),
                new MFC().setMaxCredits(CREDIT_BYTES),
                new FRAG2().setFragSize(FRAGMENT_BYTES));
    }

    private static TCP transport(JGroupsMembership.Settings settings, InetSocketAddress listen, long failure) {
        TCP tcp = new UnblockedTcp();
        tcp.setBindAddress(listen.getAddress());
        tcp.setBindPort(listen.getPort());
        tcp.setPortRange(0);
        tcp.enableSuspectEvents(true).setSockConnTimeout(Math.clamp(failure / 6, 300, 2000));
        tcp.tcpNodelay(true).setLinger(0).logDetails(false).setMaxLength(MAX_MESSAGE_BYTES);
        tcp.setBufferedInputStreamSize(STREAM_BYTES).setBufferedOutputStreamSize(STREAM_BYTES);
        tcp.logAcceptError(false);
        tcp.useVirtualThreads(true);
        tcp.getThreadPool().setMaxThreads(MAX_THREADS);
        tcp.setLogDiscardMessages(false);
        tcp.disableDiagnostics();
        tcp.setSocketFactory(
                switch (settings.proof()) {
                    case ClusterTls tls -> new TlsSockets(tls.context(), (int) failure);
                    case ClusterSecret secret -> new SecretSockets(secret, settings.cluster(), (int) failure);
                });
        return tcp;
    }

    private static SeedDiscovery discovery(SeedDiscovery seeds) {
        seeds.setPortRange(0).asyncDiscovery(true).numDiscoveryRuns(2).returnEntireCache(true);
        return seeds;
    }

    /// Returns a new address for a member.
    ///
    /// @param seed place among the seeds, or -1
    static Address address(int seed) {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        long high = (long) (seed < 0 ? MAX_RANK : Math.min(seed, MAX_RANK)) << RANDOM_BITS
                | random.nextLong() >>> (Long.SIZE - RANDOM_BITS);
        return new UUID(high, random.nextLong());
    }
}
