package io.kvcache.transport.aeron;

import io.aeron.driver.DataPacketDispatcher;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ReceiveChannelEndpointSupplier;
import io.aeron.driver.media.ReceiveChannelEndpoint;
import io.aeron.driver.media.UdpChannel;
import io.aeron.protocol.SetupFlyweight;
import java.net.InetSocketAddress;
import java.util.concurrent.atomic.AtomicBoolean;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.AtomicCounter;

/// Takes no streams over UDP whose terms are much longer than usual, but for those as long as this side's
/// own. Who sends says how long they are, up to 1 GiB, and the driver allocates three of them before
/// anybody has proved anything: one message that anybody can send took 3 GiB of shared memory.
///
/// That is a limit of each message, not of how many come: who can send to the port can still use up memory.
///
/// **Threads.** The driver's.
final class TermLengthGuard implements ReceiveChannelEndpointSupplier {

    private static final System.Logger LOG = System.getLogger(TermLengthGuard.class.getName());

    /// Of terms that need not be this side's own: four times as long as they are unless somebody says so.
    private static final int DEFAULT_MAX_BYTES = 4 << 20;

    private final int maxBytes;
    private final AtomicBoolean warned = new AtomicBoolean();

    /// @param ownBytes of a term of this side
    TermLengthGuard(int ownBytes) {
        maxBytes = Math.max(ownBytes, DEFAULT_MAX_BYTES);
    }

    @Override
    public ReceiveChannelEndpoint newInstance(
            UdpChannel channel, DataPacketDispatcher dispatcher, AtomicCounter status, MediaDriver.Context context) {
        return new Receiver(channel, dispatcher, status, context);
    }

    private boolean accepts(SetupFlyweight stream, InetSocketAddress from) {
        int bytes = stream.termLength();
        if (bytes >= 0 && bytes <= maxBytes) {
            return true;
        }
        System.Logger.Level level = warned.getAndSet(true) ? System.Logger.Level.DEBUG : System.Logger.Level.WARNING;
        LOG.log(
                level,
                "a stream from " + from + " has terms of " + bytes + " bytes, and is not taken; allowed: up to "
                        + maxBytes + "; give this side the same term-length");
        return false;
    }

    /// What the driver lets others extend to see its messages.
    private final class Receiver extends ReceiveChannelEndpoint {

        Receiver(
                UdpChannel channel,
                DataPacketDispatcher dispatcher,
                AtomicCounter status,
                MediaDriver.Context context) {
            super(channel, dispatcher, status, context);
        }

        @Override
        public void onSetupMessage(
                SetupFlyweight header,
                UnsafeBuffer buffer,
                int length,
                InetSocketAddress srcAddress,
                int transportIndex) {
            if (accepts(header, srcAddress)) {
                super.onSetupMessage(header, buffer, length, srcAddress, transportIndex);
            }
        }
    }
}
