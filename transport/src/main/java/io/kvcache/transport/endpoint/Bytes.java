package io.kvcache.transport.endpoint;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ObjectView;
import io.kvcache.transport.wire.DataFrames;
import io.kvcache.transport.wire.Payload;
import io.kvcache.transport.wire.Status;

/// Leases, and the bytes under them on their way out: from the slots to the connection, no copy between.
/// Of one connection.
final class Bytes {

    private final Service service;
    private final Session session;

    /// The lease that the last request was answered by: of one whose connection breaks the client may not
    /// know.
    private long unconfirmed;

    Bytes(Service service, Session session) {
        this.service = service;
        this.session = session;
    }

    /// Holds something open for the client, entered: the caller leaves it. It is let go when it cannot be
    /// held.
    long grantAndEnter(Lease lease) throws Refused {
        long number = grant(lease);
        if (!lease.enter()) {
            throw new Refused(Status.GONE, "the session is over");
        }
        return number;
    }

    private long grant(Lease lease) throws Refused {
        int most = service.options().most().claims();
        if (session.leases().size() >= most) {
            lease.end();
            throw new Refused(Status.BUSY, "%d leases are held; allowed: %1$d".formatted(most));
        }
        long number = session.leases().grant(lease);
        if (number == Claims.NONE) {
            lease.end();
            throw new Refused(Status.GONE, "the session is over");
        }
        unconfirmed = number;
        return number;
    }

    /// The client has asked for more, and so has had its last answer.
    void confirm() {
        unconfirmed = Claims.NONE;
    }

    /// The connection is over.
    void closed() {
        Lease lease = session.leases().expire(unconfirmed);
        if (lease != null) {
            lease.end();
        }
    }

    /// The lease with this number, entered: whoever gets it leaves it.
    Lease enter(long number) throws Refused {
        Lease lease = session.leases().find(number);
        if (lease == null || !lease.enter()) {
            throw new Refused(Status.GONE, "lease " + number + " is over");
        }
        return lease;
    }

    /// Sends blocks of a table that are ready.
    ///
    /// @param from block of the chain
    void send(Request request, BlockTable table, int from, int count) {
        DataFrames frames = request.data();
        boolean heard = true;
        for (int index = from; heard && index < from + count; index++) {
            heard = request.send(frames.next(index, table.checksum(index), Payload.of(table.segment(index))));
        }
    }

    /// Sends an object.
    void send(Request request, ObjectView view) {
        request.send(request.data().next(0, view.checksum(), Payload.of(view.segments())));
    }
}
