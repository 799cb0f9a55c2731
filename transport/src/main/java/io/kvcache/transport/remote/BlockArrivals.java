package io.kvcache.transport.remote;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.store.ChunkedCrc;
import io.kvcache.transport.link.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Violation;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/// Blocks on their way into a table. The first that does not arrive as it was sealed is the last: what
/// comes after it is thrown away.
final class BlockArrivals implements DataLine.Exchange, PayloadSink.CompletionListener {

    private final Wiring wiring;
    private final Opening opening;
    private @Nullable RemoteTable table;
    private int expected;
    private int next;
    private boolean replied;
    private boolean broken;
    private @Nullable PayloadSink landing;

    /// Of the block that is on its way.
    private ArrivalMemory.@Nullable Slot slot;

    private int checksum;

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
        try {
            attachment.data().use((line, patience) -> {
                DataLine.About about = new DataLine.About(
                        MessageType.ACQUIRE,
                        wanted.chain,
                        number,
                        body -> body.i32(wanted.from).i32(room(wiring, wanted)).i64(0));
                line.run(about, patience, arrivals);
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
            attachment.data().use((line, patience) -> {
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
    public PayloadSink data(FrameHeader header, BodyReader body) throws Violation {
        RemoteTable into = table;
        int index = body.count("index");
        checksum = body.i32("checksum");
        if (into == null || expected == 0 || index != next) {
            throw new Violation("block %d; allowed: %d of %d more".formatted(index, next, expected));
        }
        if (header.payloadBytes() != into.blockBytes()) {
            throw new Violation("a block of %d bytes; allowed: %d".formatted(header.payloadBytes(), into.blockBytes()));
        }
        next = index + 1;
        slot = broken ? null : wiring.memory().take(into.blockBytes());
        if (slot == null) {
            lost();
            return PayloadSink.discard(header.payloadBytes(), sum -> expected--);
        }
        ByteBuffer room = slot.buffer(into.blockBytes());
        landing = landing == null ? PayloadSink.into(room, this) : landing.reuse(room);
        return landing;
    }

    private void lost() {
        if (!broken) {
            wiring.counters().noMemory.increment();
        }
        broken = true;
    }

    @Override
    public void arrived(ChunkedCrc sum) {
        RemoteTable into = table;
        ArrivalMemory.Slot filled = slot;
        if (into == null || filled == null) {
            throw new IllegalStateException("a block came that nobody waits for");
        }
        slot = null;
        expected--;
        wiring.counters().bytesIn.add(into.blockBytes());
        if (sum.value() == checksum) {
            into.arrive(next - 1, new ArrivedBlock(filled, into.blockBytes(), checksum));
        } else {
            wiring.counters().corrupt.increment();
            broken = true;
            filled.free();
        }
    }

    @Override
    public boolean done() {
        return replied && expected == 0;
    }

    /// The connection is over, perhaps in the middle of a block.
    private void abort() {
        if (slot != null) {
            slot.free();
            slot = null;
        }
    }
}
