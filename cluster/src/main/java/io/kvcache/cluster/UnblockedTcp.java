package io.kvcache.cluster;

import java.lang.System.Logger.Level;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import org.jgroups.Address;
import org.jgroups.protocols.TCP;
import org.jspecify.annotations.Nullable;

/// TCP of JGroups in which no address holds up another one.
///
/// JGroups sends to all addresses by one thread, which also connects. The system accepts a connection to a
/// process that stands still, and the handshake then waits for as long as a member may be silent. Heartbeats that
/// wait behind it have the healthy members take each other for gone. So each address has a thread while there is
/// something to send to it.
///
/// Messages for an address that cannot be reached, or that has fallen far behind, are discarded. JGroups repeats
/// what matters.
///
/// **Threads.** Any.
final class UnblockedTcp extends TCP {

    private static final System.Logger LOG = System.getLogger(UnblockedTcp.class.getName());

    /// Above what members may have on the way to one that confirms nothing, see [JGroupsStack].
    private static final int MAX_WAITING_BYTES = 4 << 20;

    private final Map<Address, Outbox> outboxes = new ConcurrentHashMap<>();

    /// What waits for one address, which has a thread from the first message to the last. Changed under its lock
    /// in the map.
    private static final class Outbox {

        private final Queue<byte[]> messages = new ArrayDeque<>();
        private int bytes;
        private boolean failed;

        void add(byte[] message) {
            if (bytes + message.length <= MAX_WAITING_BYTES) {
                bytes += message.length;
                messages.add(message);
            }
        }

        byte @Nullable [] remove() {
            byte[] next = failed ? null : messages.poll();
            bytes -= next == null ? 0 : next.length;
            return next;
        }
    }

    /// Returns at once.
    ///
    /// @param data is copied
    @Override
    public void send(Address dest, byte[] data, int offset, int length) {
        byte[] message = Arrays.copyOfRange(data, offset, offset + length);
        outboxes.compute(dest, (_, present) -> {
            Outbox outbox = present == null ? new Outbox() : present;
            outbox.add(message);
            if (present == null) {
                Thread.ofVirtual().name("kvcache-cluster-send").start(() -> sendAll(dest, outbox));
            }
            return outbox;
        });
    }

    private void sendAll(Address dest, Outbox outbox) {
        for (byte[] message = next(dest, outbox); message != null; message = next(dest, outbox)) {
            try {
                super.send(dest, message, 0, message.length);
            } catch (Exception unreachable) {
                LOG.log(Level.TRACE, "messages to {0} are not sent: {1}", dest, unreachable);
                outbox.failed = true;
            }
        }
    }

    /// Returns the next message. Null when there is none, or one could not be sent: the outbox is gone then.
    private byte @Nullable [] next(Address dest, Outbox outbox) {
        AtomicReference<byte @Nullable []> next = new AtomicReference<>();
        outboxes.computeIfPresent(dest, (_, _) -> {
            byte[] message = outbox.remove();
            next.set(message);
            return message == null ? null : outbox;
        });
        return next.get();
    }
}
