package io.kvcache.cluster;

import io.kvcache.transport.cluster.NodeInfo;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Knows which servers of a cluster are there. One implementation runs in a server, and [ViewKeeper] sees only what
/// it tells.
///
/// It detects failures and nothing else: it elects no leader and orders nothing. Both sides of a partition go on, each
/// with the servers that it reaches.
///
/// **Threads.** Any.
public interface Membership extends AutoCloseable {

    /// Most bytes of a message.
    int MAX_MESSAGE_BYTES = 60 << 10;

    /// Joins. Returns when this server has its first list of members; being alone is a list too.
    ///
    /// @param self what the others are told about this server
    /// @throws IllegalStateException when another live server has this name
    void start(NodeInfo self, Listener listener);

    /// Tells the others that something about this server has changed, for example its state.
    void update(NodeInfo self);

    /// Sends a message to all other members, at most once to each. Messages of one sender arrive in order. They are
    /// not confirmed.
    ///
    /// @param message at most [#MAX_MESSAGE_BYTES]
    void broadcast(byte[] message);

    /// Returns the secret by which this server's other members prove to its transport that they are servers of the
    /// cluster: told to members alone, and another one in each process. Null where members tell no secrets.
    default @Nullable String ownSecret() {
        return null;
    }

    /// Returns the secret that another present member has told, or null when it is not known.
    ///
    /// @param node name of the member's server
    default @Nullable String secretOf(String node) {
        return null;
    }

    /// Leaves, so that the others know at once.
    @Override
    void close();

    /// Hears about members. Calls come one after another, and must not block.
    interface Listener {

        /// The members have changed.
        ///
        /// @param members all present servers about which something is known, this one among them
        /// @param merged whether two sides of a partition have met again in this change
        void onMembers(List<NodeInfo> members, boolean merged);

        /// A message of another member has arrived.
        ///
        /// @param from name of the sender
        void onMessage(String from, byte[] message);

        /// A member has sent what cannot be read or believed. The membership has logged it.
        void onUnreadable();
    }
}
