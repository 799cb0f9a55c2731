/// Membership of a cluster of servers, for the server alone.
@SuppressWarnings({"module", "requires-automatic"}) // The server and JGroups have no descriptors.
module io.kvcache.cluster {
    requires io.kvcache.transport;
    requires java.naming;
    requires org.jgroups;

    exports io.kvcache.cluster to
            io.kvcache.server;
}
