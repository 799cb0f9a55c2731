package io.kvcache.transport.remote;

import io.kvcache.transport.shm.SharedStore;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Violation;
import org.jspecify.annotations.Nullable;

/// Blocks that are leased where they lie: nothing is sent but their places.
final class PlacedBlocks implements DataLine.Exchange {

    private final Wiring wiring;
    private final SharedStore store;
    private final Opening opening;
    private @Nullable RemoteTable table;
    private int next;
    private boolean all;
    private boolean replied;

    /// Makes the table of a reply, up to where the places begin.
    @FunctionalInterface
    private interface Opening {
        RemoteTable read(BodyReader reply) throws Violation;
    }

    private PlacedBlocks(Wiring wiring, SharedStore store, int first, Opening opening) {
        this.wiring = wiring;
        this.store = store;
        this.opening = opening;
        next = first;
    }

    /// Leases what is resident.
    static RemoteTable acquire(Wiring wiring, Attachment attachment, SharedStore store, BlockArrivals.Wanted wanted)
            throws CallFailed {
        PlacedBlocks places =
                new PlacedBlocks(wiring, store, wanted.from(), reply -> opened(wiring, attachment, wanted, reply));
        int number = attachment.number(wanted.chain().namespace());
        try {
            attachment.data().use((line, patience) -> {
                DataLine.About about = new DataLine.About(
                        MessageType.ACQUIRE,
                        wanted.chain(),
                        number,
                        body -> body.i32(wanted.from()).i32(0).i64(0).u8(1));
                line.run(about, patience, places);
            });
        } catch (CallFailed failed) {
            if (places.table == null) {
                throw failed;
            }
        }
        RemoteTable table = places.table;
        if (table == null) {
            throw CallFailed.unanswered("no table came");
        }
        table.end();
        return table;
    }

    /// The table of an answer to ACQUIRE, up to where the places begin.
    static RemoteTable opened(Wiring wiring, Attachment attachment, BlockArrivals.Wanted wanted, BodyReader reply)
            throws Violation {
        long lease = reply.i64("lease");
        reply.count("ready");
        int end = reply.count("end");
        reply.count("sent");
        return new RemoteTable(
                wiring,
                attachment,
                new RemoteTable.Span(lease, wanted.from(), end, wanted.blockBytes(), Long.MAX_VALUE));
    }

    /// Brings the places of blocks of a lease into its table.
    ///
    /// @return whether all of them came
    static boolean read(Wiring wiring, Attachment attachment, SharedStore store, RemoteTable table, Run run) {
        PlacedBlocks places = new PlacedBlocks(wiring, store, run.from, reply -> table);
        try {
            attachment.data().use((line, patience) -> {
                BodyWriter body =
                        new BodyWriter().i64(table.lease()).i32(run.from).i32(run.count);
                line.run(MessageType.PLACES, body, patience, places);
            });
            return places.all && places.next == run.from + run.count;
        } catch (CallFailed failed) {
            wiring.counters().failed.increment();
            return false;
        }
    }

    /// Blocks of a chain.
    record Run(int from, int count) {}

    @Override
    public void reply(BodyReader body) throws Violation {
        RemoteTable into = opening.read(body);
        table = into;
        replied = true;
        all = true;
        int count = body.more() ? body.count("places") : 0;
        if (count > 0) {
            body.skip(Integer.BYTES);
        }
        for (int i = 0; i < count && all; i++) {
            place(into, body.i64("handle"));
        }
    }

    private void place(RemoteTable into, long handle) {
        PlacedBlock block = PlacedBlock.of(store, handle, into.blockBytes());
        all = block != null;
        if (block != null) {
            into.arrive(next, block);
            wiring.counters().placed.increment();
            next++;
        }
    }

    @Override
    public boolean done() {
        return replied;
    }
}
