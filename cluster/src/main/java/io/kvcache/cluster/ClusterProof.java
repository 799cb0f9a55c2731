package io.kvcache.cluster;

/// By what a server proves to the others that it belongs to the cluster, and finds out that they do.
public sealed interface ClusterProof permits ClusterTls, ClusterSecret {}
