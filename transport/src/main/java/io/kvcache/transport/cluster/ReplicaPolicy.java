package io.kvcache.transport.cluster;

import java.util.Arrays;
import java.util.Comparator;

/// Which groups of blocks have copies beside that of their owner.
///
/// A server tells its policy as [features][NodeInfo#features]. The policy of a cluster is what all its servers
/// have in common, so clients behave alike whichever server tells them the view, and a server that knows no copies
/// switches them off.
public enum ReplicaPolicy {

    /// None.
    NONE(0),

    /// Groups that are read much: clients read them at up to eight servers.
    HEAT(1),

    /// Those, and each group that has been read has a second copy at the next server of its order.
    REUSED(1 | 2);

    private final long features;

    ReplicaPolicy(long features) {
        this.features = features;
    }

    /// The bits of [NodeInfo#features] of a server with this policy.
    public long features() {
        return features;
    }

    /// Returns the policy that such features stand for.
    public static ReplicaPolicy of(long features) {
        return Arrays.stream(values())
                .filter(policy -> (features & policy.features) == policy.features)
                .max(Comparator.naturalOrder())
                .orElse(NONE);
    }
}
