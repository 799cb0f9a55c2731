package io.kvcache.transport.endpoint;

import io.kvcache.core.BlockTable;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.time.Timeouts;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.HintCodec;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.nio.LongBuffer;
import java.time.Duration;

/// Requests about chains of blocks that are here.
final class BlockRequestHandler {

    private final EndpointContext endpointContext;
    private final ClientSession session;
    private final ChainCache chains;
    private final BlockSender blockSender;
    private final SharedMemoryHandler share;

    BlockRequestHandler(
            EndpointContext endpointContext,
            ClientSession session,
            ChainCache chains,
            BlockSender blockSender,
            SharedMemoryHandler share) {
        this.endpointContext = endpointContext;
        this.session = session;
        this.chains = chains;
        this.blockSender = blockSender;
        this.share = share;
    }

    RequestDispatcher.RequestAction defineChain(BodyReader body) throws ProtocolException {
        chains.define(body);
        return () -> {};
    }

    /// `chain[, u64 timeout]` → `u32 device, u32 host, u32 disk`
    RequestDispatcher.RequestAction match(EndpointRequest request, BodyReader body)
            throws ProtocolException, RequestException {
        BlockChain chain = chains.read(body);
        boolean timed = body.hasRemaining();
        Duration timeout = Duration.ofNanos(timed ? body.nonNegativeLong("timeout") : 0);
        return () -> {
            KvCache cache = endpointContext.cache();
            Match match = timed ? cache.match(chain, timeout) : cache.match(chain);
            request.reply(new BodyWriter()
                    .i32(match.deviceBlocks())
                    .i32(match.hostBlocks())
                    .i32(match.diskBlocks()));
        };
    }

    /// `chain, u32 from, u32 most to send, u64 timeout[, u8 places]` → `u64 lease, u32 ready, u32 end, u32
    /// sent[, places]` ([#write][SharedMemoryHandler]) and as many DATA as sent; then PROGRESS until all has
    /// arrived that will.
    RequestDispatcher.RequestAction acquire(EndpointRequest request, BodyReader body)
            throws ProtocolException, RequestException {
        BlockChain chain = chains.read(body);
        int from = body.count("from");
        int most = body.count("most");
        Duration timeout = Duration.ofNanos(body.nonNegativeLong("timeout"));
        int places = SharedMemoryHandler.placeKind(body, SharedMemoryHandler.NOTHING);
        return () -> {
            BlockTable table = endpointContext.cache().acquire(chain, from, timeout);
            if (table.blocks() == 0) {
                table.close();
                request.reply(
                        new BodyWriter().i64(HandleTable.NONE).i32(0).i32(from).i32(0));
            } else {
                sendTable(request, table, most, places);
            }
        };
    }

    private void sendTable(EndpointRequest request, BlockTable table, int most, int places) throws RequestException {
        Lease lease = Lease.of(table);
        long number = blockSender.grantAndEnter(lease);
        try {
            int end = table.endBlock();
            int ready = table.readyBlocks();
            int sent = Math.min(ready, most);
            BodyWriter reply = new BodyWriter().i64(number).i32(ready).i32(end).i32(sent);
            if (places != SharedMemoryHandler.NOTHING) {
                share.writePlaces(table, new SharedMemoryHandler.BlockRange(table.firstBlock(), ready, places), reply);
            }
            if (request.reply(reply)) {
                blockSender.send(request, table, table.firstBlock(), sent);
                if (ready < end - table.firstBlock()) {
                    watchProgress(request, number, ready);
                }
            }
        } finally {
            lease.leave();
        }
    }

    /// Tells the client whenever more has arrived.
    private void watchProgress(EndpointRequest request, long number, int known) throws RequestException {
        Lease lease = blockSender.enterLease(number);
        try {
            BlockTable table = tableOf(lease);
            int first = table.firstBlock();
            table.onReady(first + known + 1, endpointContext.executor())
                    .thenAccept(readyEnd -> sendProgress(request, number, readyEnd - first));
        } finally {
            lease.leave();
        }
    }

    private void sendProgress(EndpointRequest request, long number, int ready) {
        Lease lease = session.leases().find(number);
        if (lease == null || !lease.enter()) {
            return;
        }
        try {
            BlockTable table = tableOf(lease);
            int end = table.endBlock();
            BodyWriter news = new BodyWriter().i64(number).i32(ready).i32(end);
            boolean heard = request.frameSink().send(news.request(MessageType.PROGRESS, 0, 0));
            if (heard && ready < end - table.firstBlock()) {
                watchProgress(request, number, ready);
            }
        } catch (RequestException over) {
            // It ended meanwhile: nobody wants to know.
        } finally {
            lease.leave();
        }
    }

    /// `u64 lease, u32 block, u32 count` → `u32 count` and as many DATA; of an object block 0, count 1.
    RequestDispatcher.RequestAction read(EndpointRequest request, BodyReader body) throws ProtocolException {
        long number = body.i64("lease");
        int from = body.count("block");
        int count = body.count("count");
        return () -> {
            Lease lease = blockSender.enterLease(number);
            try {
                ObjectView view = lease.view();
                if (view != null) {
                    request.reply(new BodyWriter().i32(1));
                    blockSender.send(request, view);
                } else {
                    read(request, tableOf(lease), from, count);
                }
            } finally {
                lease.leave();
            }
        };
    }

    private void read(EndpointRequest request, BlockTable table, int from, int count) throws RequestException {
        int end = table.readyEnd();
        if (from < table.firstBlock() || count > end - from) {
            String text = "blocks %d to %d; ready are %d to %d".formatted(from, from + count, table.firstBlock(), end);
            throw new RequestException(Status.INVALID, text);
        }
        request.reply(new BodyWriter().i32(count));
        blockSender.send(request, table, from, count);
    }

    private static BlockTable tableOf(Lease lease) throws RequestException {
        BlockTable table = lease.table();
        if (table == null) {
            throw new RequestException(Status.INVALID, "the lease is on an object");
        }
        return table;
    }

    /// `u32 count, u32 0, as many u64 lease`, no reply
    RequestDispatcher.RequestAction release(BodyReader body) throws ProtocolException {
        long count = body.count("count");
        LongBuffer numbers =
                body.skip(Integer.BYTES).slice("leases", count * Long.BYTES).asLongBuffer();
        return () -> {
            while (numbers.hasRemaining()) {
                Lease lease = session.leases().remove(numbers.get());
                if (lease != null) {
                    lease.end();
                }
            }
        };
    }

    /// `chain, u32 from` → `u32 blocks`
    RequestDispatcher.RequestAction drop(EndpointRequest request, BodyReader body)
            throws ProtocolException, RequestException {
        BlockChain chain = chains.read(body);
        int from = body.count("from");
        return () -> request.reply(new BodyWriter().i32(endpointContext.cache().drop(chain, from)));
    }

    /// `chain` and a [hint][HintCodec] → `u8 taken`; a kind that is not known is not taken.
    RequestDispatcher.RequestAction hint(EndpointRequest request, BodyReader body)
            throws ProtocolException, RequestException {
        BlockChain chain = chains.read(body);
        HintCodec.DecodedHint decodedHint = HintCodec.read(body);
        return () -> {
            Hint hint = decodedHint.forChain(chain);
            request.reply(new BodyWriter().u8(hint != null && applyHint(hint) ? 1 : 0));
        };
    }

    private boolean applyHint(Hint hint) {
        if (!(hint instanceof Hint.Pin pin) || pin.chain().length() == 0) {
            return endpointContext.cache().hint(hint);
        }
        SessionPins.PinRequest pinRequest = SessionPins.PinRequest.of(endpointContext.cache(), pin);
        return session.pins()
                        .apply(
                                SessionPins.PinRefCounts.of(endpointContext.cache()),
                                pinRequest,
                                Timeouts.toNanos(pin.time()))
                || pin.time().isZero();
    }
}
