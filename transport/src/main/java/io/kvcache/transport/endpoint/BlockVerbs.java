package io.kvcache.transport.endpoint;

import io.kvcache.core.BlockTable;
import io.kvcache.core.Hint;
import io.kvcache.core.Match;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.HintCodec;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;
import java.nio.LongBuffer;

/// Requests about chains of blocks that are here.
final class BlockVerbs {

    private final Service service;
    private final Session session;
    private final ChainSlots chains;
    private final Bytes bytes;
    private final ShareVerbs share;

    BlockVerbs(Service service, Session session, ChainSlots chains, Bytes bytes, ShareVerbs share) {
        this.service = service;
        this.session = session;
        this.chains = chains;
        this.bytes = bytes;
        this.share = share;
    }

    Requests.Parsed chain(BodyReader body) throws Violation {
        chains.define(body);
        return () -> {};
    }

    /// `chain` → `u32 device, u32 host, u32 disk`
    Requests.Parsed match(Request request, BodyReader body) throws Violation, Refused {
        BlockChain chain = chains.read(body);
        return () -> {
            Match match = service.cache().match(chain, Long.MAX_VALUE);
            request.reply(new BodyWriter()
                    .i32(match.deviceBlocks())
                    .i32(match.hostBlocks())
                    .i32(match.diskBlocks()));
        };
    }

    /// `chain, u32 from, u32 most to send, u64 timeout[, u8 places]` → `u64 lease, u32 ready, u32 end, u32
    /// sent[, places]` ([#write][ShareVerbs]) and as many DATA as sent; then PROGRESS until all has arrived that
    /// will.
    Requests.Parsed acquire(Request request, BodyReader body) throws Violation, Refused {
        BlockChain chain = chains.read(body);
        int from = body.count("from");
        int most = body.count("most");
        long timeout = body.amount("timeout");
        int places = ShareVerbs.kind(body, ShareVerbs.NOTHING);
        return () -> {
            BlockTable table = service.cache().acquire(chain, from, timeout);
            if (table.blocks() == 0) {
                table.close();
                request.reply(new BodyWriter().i64(Claims.NONE).i32(0).i32(from).i32(0));
            } else {
                acquired(request, table, most, places);
            }
        };
    }

    private void acquired(Request request, BlockTable table, int most, int places) throws Refused {
        Lease lease = Lease.of(table);
        long number = bytes.grantAndEnter(lease);
        try {
            int end = table.endBlock();
            int ready = table.readyBlocks();
            int sent = Math.min(ready, most);
            BodyWriter reply = new BodyWriter().i64(number).i32(ready).i32(end).i32(sent);
            if (places != ShareVerbs.NOTHING) {
                share.write(table, new ShareVerbs.Span(table.firstBlock(), ready, places), reply);
            }
            if (request.reply(reply)) {
                bytes.send(request, table, table.firstBlock(), sent);
                if (ready < end - table.firstBlock()) {
                    follow(request, number, ready);
                }
            }
        } finally {
            lease.leave();
        }
    }

    /// Tells the client whenever more has arrived.
    private void follow(Request request, long number, int known) throws Refused {
        Lease lease = bytes.enter(number);
        try {
            BlockTable table = tableOf(lease);
            table.onReady(known + 1, service.later()).thenAccept(ready -> tell(request, number, ready));
        } finally {
            lease.leave();
        }
    }

    private void tell(Request request, long number, int ready) {
        Lease lease = session.leases().find(number);
        if (lease == null || !lease.enter()) {
            return;
        }
        try {
            BlockTable table = tableOf(lease);
            int end = table.endBlock();
            BodyWriter news = new BodyWriter().i64(number).i32(ready).i32(end);
            boolean heard = request.outlet().send(news.request(MessageType.PROGRESS, 0, 0));
            if (heard && ready < end - table.firstBlock()) {
                follow(request, number, ready);
            }
        } catch (Refused over) {
            // It ended meanwhile: nobody wants to know.
        } finally {
            lease.leave();
        }
    }

    /// `u64 lease, u32 block, u32 count` → `u32 count` and as many DATA; of an object block 0, count 1.
    Requests.Parsed read(Request request, BodyReader body) throws Violation {
        long number = body.i64("lease");
        int from = body.count("block");
        int count = body.count("count");
        return () -> {
            Lease lease = bytes.enter(number);
            try {
                ObjectView view = lease.view();
                if (view != null) {
                    request.reply(new BodyWriter().i32(1));
                    bytes.send(request, view);
                } else {
                    read(request, tableOf(lease), from, count);
                }
            } finally {
                lease.leave();
            }
        };
    }

    private void read(Request request, BlockTable table, int from, int count) throws Refused {
        int end = table.firstBlock() + table.readyBlocks();
        if (from < table.firstBlock() || count > end - from) {
            String text = "blocks %d to %d; ready are %d to %d".formatted(from, from + count, table.firstBlock(), end);
            throw new Refused(Status.INVALID, text);
        }
        request.reply(new BodyWriter().i32(count));
        bytes.send(request, table, from, count);
    }

    private static BlockTable tableOf(Lease lease) throws Refused {
        BlockTable table = lease.table();
        if (table == null) {
            throw new Refused(Status.INVALID, "the lease is on an object");
        }
        return table;
    }

    /// `u32 count, u32 0, as many u64 lease`, no reply
    Requests.Parsed release(BodyReader body) throws Violation {
        long count = body.count("count");
        LongBuffer numbers =
                body.skip(Integer.BYTES).span("leases", count * Long.BYTES).asLongBuffer();
        return () -> {
            while (numbers.hasRemaining()) {
                Lease lease = session.leases().take(numbers.get());
                if (lease != null) {
                    lease.end();
                }
            }
        };
    }

    /// `chain, u32 from` → `u32 blocks`
    Requests.Parsed drop(Request request, BodyReader body) throws Violation, Refused {
        BlockChain chain = chains.read(body);
        int from = body.count("from");
        return () -> request.reply(new BodyWriter().i32(service.cache().drop(chain, from)));
    }

    /// `chain` and a [hint][HintCodec] → `u8 taken`; a kind that is not known is not taken.
    Requests.Parsed hint(Request request, BodyReader body) throws Violation, Refused {
        BlockChain chain = chains.read(body);
        HintCodec.Told told = HintCodec.read(body);
        return () -> {
            Hint hint = told.about(chain);
            request.reply(new BodyWriter().u8(hint != null && take(hint) ? 1 : 0));
        };
    }

    private boolean take(Hint hint) {
        if (!(hint instanceof Hint.Pin pin) || pin.chain().length() == 0) {
            return service.cache().hint(hint);
        }
        SessionPins.Wanted wanted = SessionPins.Wanted.of(service.cache(), pin);
        return session.pins().take(PinOwners.of(service.cache()), wanted, pin.forNanos()) || pin.forNanos() == 0;
    }
}
