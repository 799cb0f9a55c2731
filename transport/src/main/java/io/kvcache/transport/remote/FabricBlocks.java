package io.kvcache.transport.remote;

import io.kvcache.core.store.ChunkedCrc;
import io.kvcache.transport.ucx.UcxReader;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Violation;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Leased blocks that this side reads out of the server's memory by itself. The lease keeps them where they are;
/// whether it did is asked when they are here, as nobody hears in time that a session has ended.
final class FabricBlocks implements DataLine.Exchange {

    /// What of places is asked for: offsets and checksums.
    private static final int OFFSETS = 2;

    private final Wiring wiring;
    private final UcxReader reader;
    private final Opening opening;
    private final List<Place> places = new ArrayList<>();
    private @Nullable RemoteTable table;
    private boolean replied;

    /// Makes the table of a reply, up to where the places begin.
    @FunctionalInterface
    private interface Opening {
        RemoteTable read(BodyReader reply) throws Violation;
    }

    /// Where a block lies in the slots, and the checksum it has there.
    private record Place(long offset, int checksum) {}

    private FabricBlocks(Wiring wiring, UcxReader reader, Opening opening) {
        this.wiring = wiring;
        this.reader = reader;
        this.opening = opening;
    }

    /// Leases what is resident, and waits until it is here.
    static RemoteTable acquire(Wiring wiring, Attachment attachment, UcxReader reader, BlockArrivals.Wanted wanted)
            throws CallFailed {
        FabricBlocks blocks =
                new FabricBlocks(wiring, reader, reply -> PlacedBlocks.opened(wiring, attachment, wanted, reply));
        long until = System.nanoTime() + wiring.options().requestNanos();
        int number = attachment.number(wanted.chain().namespace());
        try {
            attachment.data().use(until, (line, patience) -> {
                DataLine.About about = new DataLine.About(
                        MessageType.ACQUIRE,
                        wanted.chain(),
                        number,
                        body -> body.i32(wanted.from()).i32(0).i64(0).u8(OFFSETS));
                line.run(about, patience, blocks);
            });
        } catch (CallFailed failed) {
            if (blocks.table == null) {
                throw failed;
            }
        }
        RemoteTable table = blocks.table;
        if (table == null) {
            throw CallFailed.unanswered("no table came");
        }
        blocks.bring(new Into(attachment, table, wanted.from(), until));
        table.end();
        return table;
    }

    /// Brings blocks of a lease into its table.
    ///
    /// @return whether all of them came
    static boolean read(
            Wiring wiring, Attachment attachment, UcxReader reader, RemoteTable table, PlacedBlocks.Run run) {
        FabricBlocks blocks = new FabricBlocks(wiring, reader, reply -> table);
        long until = System.nanoTime() + wiring.options().requestNanos();
        try {
            BodyWriter body = new BodyWriter()
                    .i64(table.lease())
                    .i32(run.from())
                    .i32(run.count())
                    .u8(OFFSETS);
            attachment.data().use(until, (line, patience) -> line.run(MessageType.PLACES, body, patience, blocks));
            return blocks.bring(new Into(attachment, table, run.from(), until)) == run.count();
        } catch (CallFailed failed) {
            wiring.counters().failed.increment();
            return false;
        }
    }

    @Override
    public void reply(BodyReader body) throws Violation {
        table = opening.read(body);
        replied = true;
        int count = body.more() ? body.count("places") : 0;
        if (count > 0) {
            body.skip(Integer.BYTES);
        }
        for (int i = 0; i < count; i++) {
            places.add(new Place(body.i64("offset"), body.i32("checksum")));
            body.skip(Integer.BYTES);
        }
    }

    @Override
    public boolean done() {
        return replied;
    }

    /// Where blocks go.
    ///
    /// @param first block of the chain
    /// @param untilNanos when nobody waits any longer
    private record Into(Attachment attachment, RemoteTable table, int first, long untilNanos) {}

    /// Reads the blocks and hands those to the table that came as they were sealed, up to the first that did not.
    ///
    /// @return how many
    private int bring(Into to) {
        RemoteTable into = to.table;
        List<ArrivalMemory.Slot> slots = new ArrayList<>();
        List<UcxReader.Piece> pieces = new ArrayList<>();
        for (Place place : places) {
            ArrivalMemory.Slot slot = reader.has(place.offset, into.blockBytes())
                    ? wiring.memory().take(into.blockBytes())
                    : null;
            if (slot == null) {
                wiring.counters().noMemory.increment();
                break;
            }
            slots.add(slot);
            pieces.add(new UcxReader.Piece(place.offset, slot.segment(into.blockBytes())));
        }
        UcxReader.Outcome outcome = reader.read(pieces, Math.max(1, to.untilNanos - System.nanoTime()));
        if (outcome == UcxReader.Outcome.STUCK) {
            return 0; // And the slots stay in use for good.
        }
        int good = outcome == UcxReader.Outcome.DONE && held(to) ? right(pieces) : 0;
        for (int i = 0; i < slots.size(); i++) {
            if (i < good) {
                into.arrive(to.first + i, new ArrivedBlock(slots.get(i), into.blockBytes(), places.get(i).checksum));
            } else {
                slots.get(i).free();
            }
        }
        wiring.counters().fetched.add(good);
        wiring.counters().bytesIn.add(good * into.blockBytes());
        return good;
    }

    /// How many leading blocks have their checksums.
    private int right(List<UcxReader.Piece> pieces) {
        int good = 0;
        while (good < pieces.size() && ChunkedCrc.of(pieces.get(good).into()) == places.get(good).checksum) {
            good++;
        }
        wiring.counters().corrupt.add(good < pieces.size() ? 1 : 0);
        return good;
    }

    /// Whether the server has kept the blocks in their places until now.
    private boolean held(Into to) {
        try {
            BodyWriter body = new BodyWriter().i64(to.table.lease()).i32(0).i32(0);
            to.attachment
                    .data()
                    .use(
                            to.untilNanos,
                            (line, patience) -> line.run(MessageType.PLACES, body, patience, new Answered()));
            return true;
        } catch (CallFailed gone) {
            wiring.counters().failed.increment();
            return false;
        }
    }
}
