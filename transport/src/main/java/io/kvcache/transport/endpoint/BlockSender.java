package io.kvcache.transport.endpoint;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ObjectView;
import io.kvcache.transport.wire.OutboundFrame;
import io.kvcache.transport.wire.Payload;
import io.kvcache.transport.wire.Status;

/// Leases, and the bytes under them on their way out: from the slots to the connection, no copy between.
/// Of one connection.
final class BlockSender {

    private final EndpointContext endpointContext;
    private final ClientSession session;

    /// The lease that the last request was answered by: of one whose connection breaks the client may not
    /// know.
    private long unconfirmed;

    BlockSender(EndpointContext endpointContext, ClientSession session) {
        this.endpointContext = endpointContext;
        this.session = session;
    }

    /// Holds something open for the client, entered: the caller leaves it. It is let go when it cannot be
    /// held.
    long grantAndEnter(Lease lease) throws RequestException {
        long number = grant(lease);
        if (!lease.enter()) {
            throw new RequestException(Status.GONE, "the session is over");
        }
        return number;
    }

    private long grant(Lease lease) throws RequestException {
        int most = endpointContext.options().limits().handles();
        if (session.leases().size() >= most) {
            lease.end();
            throw new RequestException(Status.BUSY, "%d leases are held; allowed: %1$d".formatted(most));
        }
        long number = session.leases().grant(lease);
        if (number == HandleTable.NONE) {
            lease.end();
            throw new RequestException(Status.GONE, "the session is over");
        }
        unconfirmed = number;
        return number;
    }

    /// The client has asked for more, and so has had its last answer.
    void onNextRequest() {
        unconfirmed = HandleTable.NONE;
    }

    /// The connection is over.
    void onClosed() {
        Lease lease = session.leases().expire(unconfirmed);
        if (lease != null) {
            lease.end();
        }
    }

    /// The lease with this number, entered: whoever gets it leaves it.
    Lease enterLease(long number) throws RequestException {
        Lease lease = session.leases().find(number);
        if (lease == null || !lease.enter()) {
            throw new RequestException(Status.GONE, "lease " + number + " is over");
        }
        return lease;
    }

    /// Sends blocks of a table that are ready.
    ///
    /// @param from block of the chain
    void send(EndpointRequest request, BlockTable table, int from, int count) {
        OutboundFrame.DataFrames frames = request.dataFrames();
        boolean heard = true;
        for (int index = from; heard && index < from + count; index++) {
            heard = request.send(frames.next(index, table.checksum(index), Payload.of(table.segment(index))));
        }
    }

    /// Sends an object.
    void send(EndpointRequest request, ObjectView view) {
        request.send(request.dataFrames().next(0, view.checksum(), Payload.of(view.segments())));
    }
}
