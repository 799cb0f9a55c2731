/// The server as a member of a cluster: when it joins and leaves, and what operators see of it. Only
/// [io.kvcache.server.cluster.ClusterMember] knows which membership runs.
@NullMarked
package io.kvcache.server.cluster;

import org.jspecify.annotations.NullMarked;
