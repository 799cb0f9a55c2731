package io.kvcache.transport.remote;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.transport.link.Landing;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Violation;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Blocks on their way into a table. The first that does not arrive as it was sealed is the last: what
/// comes after it is thrown away.
final class BlockArrivals implements DataLine.Exchange {

    private final Wiring wiring;
    private final Opening opening;
    private @Nullable RemoteTable table;
    private int expected;
    private int next;
    private boolean replied;
    private boolean broken;
    private ArrivalMemory.@Nullable Slot landing;

    /// Makes the table of a reply, and says how many blocks come.
    @FunctionalInterface
    private interface Opening {
        Opened read(BodyReader reply) throws Violation;
    }

    private record Opened(RemoteTable table, int count) {}

    private BlockArrivals(Wiring wiring, int first, Opening opening) {
        this.wiring = wiring;
        this.opening = opening;
        next = first;
    }

    /// What a caller wants of a chain.
    ///
    /// @param from first block wanted
    record Wanted(BlockChain chain, int from) {

        long blockBytes() {
            return chain.namespace().parts().getFirst().bytes();
        }
    }

    /// Asks for what is resident and waits until it is here.
    ///
    /// @return null when there was no answer at all
    static @Nullable RemoteTable acquire(Wiring wiring, Attachment attachment, Wanted wanted) throws CallFailed {
        BlockArrivals arrivals =
                new BlockArrivals(wiring, wanted.from, reply -> opened(wiring, attachment, wanted, reply));
        int number = attachment.number(wanted.chain.namespace());
        long patience = wiring.options().requestNanos();
        try {
            attachment.data().use(line -> {
                DataLine.About about = line.about(wanted.chain, number);
                about.body().i32(wanted.from).i32(room(wiring, wanted)).i64(0);
                line.run(MessageType.ACQUIRE, about, patience, arrivals);
            });
        } catch (CallFailed failed) {
            arrivals.abort();
            if (arrivals.table == null) {
                throw failed;
            }
        }
        RemoteTable table = arrivals.table;
        if (table != null) {
            table.end();
        }
        return table;
    }

    private static int room(Wiring wiring, Wanted wanted) {
        long slots = wiring.memory().available(wanted.blockBytes());
        return (int) Math.min(slots, wanted.chain.length() - wanted.from);
    }

    private static Opened opened(Wiring wiring, Attachment attachment, Wanted wanted, BodyReader reply)
            throws Violation {
        long lease = reply.i64("lease");
        int ready = reply.count("ready");
        int end = reply.count("end");
        int sent = reply.count("sent");
        if (sent > ready || sent > wanted.chain.length() - wanted.from) {
            throw new Violation("%d blocks sent; allowed: 0 to %d".formatted(sent, ready));
        }
        RemoteTable.Span span = new RemoteTable.Span(lease, wanted.from, end, wanted.blockBytes(), Long.MAX_VALUE);
        return new Opened(new RemoteTable(wiring, attachment, span), sent);
    }

    /// Brings blocks of a lease into its table.
    ///
    /// @return whether all of them came
    static boolean read(Wiring wiring, Attachment attachment, RemoteTable table, int from, int count) {
        BlockArrivals arrivals = new BlockArrivals(wiring, from, reply -> new Opened(table, reply.count("count")));
        try {
            long patience = wiring.options().requestNanos();
            attachment.data().use(line -> {
                BodyWriter body = new BodyWriter().i64(table.lease()).i32(from).i32(count);
                line.run(MessageType.READ, body, patience, arrivals);
            });
            return !arrivals.broken;
        } catch (CallFailed failed) {
            wiring.counters().failed.increment();
            arrivals.abort();
            return false;
        }
    }

    @Override
    public void reply(BodyReader body) throws Violation {
        Opened opened = opening.read(body);
        table = opened.table;
        expected = opened.count;
        replied = true;
    }

    @Override
    public Landing data(FrameHeader header, BodyReader body) throws Violation {
        RemoteTable into = table;
        int index = body.count("index");
        int checksum = body.i32("checksum");
        if (into == null || expected == 0 || index != next) {
            throw new Violation("block %d; allowed: %d of %d more".formatted(index, next, expected));
        }
        if (header.payloadBytes() != into.blockBytes()) {
            throw new Violation("a block of %d bytes; allowed: %d".formatted(header.payloadBytes(), into.blockBytes()));
        }
        next = index + 1;
        ArrivalMemory.Slot slot = broken ? null : wiring.memory().take(into.blockBytes());
        if (slot == null) {
            lost();
            return Landing.discard(header.payloadBytes(), sum -> expected--);
        }
        landing = slot;
        return Landing.into(
                List.of(slot.segment(into.blockBytes())),
                sum -> landed(into, slot, new Landed(index, sum.value(), checksum)));
    }

    private void lost() {
        if (!broken) {
            wiring.counters().noMemory.increment();
        }
        broken = true;
    }

    /// What came, and the checksum it should have.
    private record Landed(int index, int found, int checksum) {}

    private void landed(RemoteTable into, ArrivalMemory.Slot slot, Landed landed) {
        landing = null;
        expected--;
        wiring.counters().bytesIn.add(into.blockBytes());
        if (landed.found == landed.checksum && !broken) {
            into.arrive(landed.index, new ArrivedBlock(slot, into.blockBytes(), landed.checksum));
        } else {
            wiring.counters().corrupt.increment();
            broken = true;
            slot.free();
        }
    }

    @Override
    public boolean done() {
        return replied && expected == 0;
    }

    /// The connection is over, perhaps in the middle of a block.
    private void abort() {
        ArrivalMemory.Slot slot = landing;
        if (slot != null) {
            slot.free();
            landing = null;
        }
    }
}
