package io.kvcache.transport.endpoint;

import io.kvcache.transport.link.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;

/// Hands the requests of one connection to those who know how.
final class RequestDispatcher {

    private final EndpointContext endpointContext;
    private final ClientSession session;
    private final ChainCache chains;
    private final BlockSender blockSender;
    private final BlockRequestHandler blocks;
    private final PutRequestHandler puts;
    private final StagedPutHandler staged;
    private final ObjectRequestHandler objects;
    private final StoreAdminRequestHandler store;
    private final SharedMemoryHandler share;
    private final DiscoveryHandler ways;

    RequestDispatcher(EndpointContext endpointContext, ClientSession session) {
        this.endpointContext = endpointContext;
        this.session = session;
        chains = new ChainCache(
                session,
                endpointContext.options().limits().heap(),
                endpointContext.shared().chains());
        blockSender = new BlockSender(endpointContext, session);
        share = new SharedMemoryHandler(endpointContext, session, blockSender);
        blocks = new BlockRequestHandler(endpointContext, session, chains, blockSender, share);
        puts = new PutRequestHandler(endpointContext, session, chains);
        staged = new StagedPutHandler(endpointContext, session, chains, share);
        objects = new ObjectRequestHandler(endpointContext, session, blockSender, share);
        store = new StoreAdminRequestHandler(endpointContext, session);
        ways = new DiscoveryHandler(endpointContext);
    }

    ClientSession session() {
        return session;
    }

    void onMessage(MessageType type, EndpointRequest request, BodyReader body) throws ProtocolException {
        blockSender.onNextRequest();
        RequestAction requestAction;
        try {
            requestAction = parse(type, request, body);
        } catch (RequestException requestException) {
            request.reject(requestException);
            return;
        }
        if (endpointContext.gracefulShutdown().rejects(type)) {
            request.reject(Status.BUSY, GracefulShutdown.REJECTION_MESSAGE);
            return;
        }
        endpointContext.runOrReject(request, requestAction::run);
    }

    /// A request that has been read: it is sound, but may still be refused.
    @FunctionalInterface
    interface RequestAction {
        void run() throws RequestException;
    }

    private RequestAction parse(MessageType type, EndpointRequest request, BodyReader body)
            throws ProtocolException, RequestException {
        return switch (type) {
            case PING, RENEW -> () -> request.reply(new BodyWriter());
            case SHARE -> share.share(request);
            case FABRIC -> share.fabric(request);
            case PLACES -> share.places(request, body);
            case TOUCH -> share.touch(body);
            case OFFERS -> ways.listOffers(request);
            case REGISTER -> store.register(request, body);
            case DROP_NAMESPACE -> store.drop(request, body);
            case STATS -> store.stats(request);
            case EVENTS -> store.events(request, body);
            case SNAPSHOT -> store.snapshot(request, body);
            case FLUSH -> store.flush(request, body);
            case CHAIN -> blocks.defineChain(body);
            case MATCH -> blocks.match(request, body);
            case ACQUIRE -> blocks.acquire(request, body);
            case READ -> blocks.read(request, body);
            case RELEASE -> blocks.release(body);
            case DROP_CHAIN -> blocks.drop(request, body);
            case HINT -> blocks.hint(request, body);
            case RESERVE -> puts.reserve(request, body);
            case RESERVE_OBJECT -> puts.reserveObject(request, body);
            case ABANDON -> puts.abandon(body);
            case STAGE -> staged.stage(request, body);
            case FILL_STAGED -> staged.fill(request, body);
            case PUT_STAGED -> staged.put(request, body);
            case PUT_OBJECT_STAGED -> staged.putObject(request, body);
            case GET_OBJECT -> objects.get(request, body);
            case CONTAINS_OBJECT -> objects.contains(request, body);
            case DROP_OBJECT -> objects.drop(request, body);
            case HINT_OBJECTS -> objects.hint(request, body);
            case FILL, PUT, PUT_OBJECT, PROBE ->
                throw new ProtocolException(type + " without a payload; allowed: 1 byte and up");
            case ERROR, HELLO, AUTH, PROGRESS, DATA ->
                throw new ProtocolException("message " + type + " from a client that is in; allowed: requests");
        };
    }

    PayloadSink onPayload(FrameHeader header, EndpointRequest request, BodyReader body) throws ProtocolException {
        blockSender.onNextRequest();
        try {
            return payloadSink(header, request, body);
        } catch (RequestException requestException) {
            return PayloadSink.discard(header.payloadBytes(), sum -> request.reject(requestException));
        }
    }

    private PayloadSink payloadSink(FrameHeader header, EndpointRequest request, BodyReader body)
            throws ProtocolException, RequestException {
        return switch (request.type()) {
            case FILL -> puts.fill(header, request, body);
            case PUT -> puts.put(header, request, body);
            case PUT_OBJECT -> puts.putObject(header, request, body);
            case PROBE -> ways.probe(header, request, body);
            default -> throw new RequestException(Status.INVALID, request.type() + " takes no payload");
        };
    }

    /// The connection is over.
    void onClosed() {
        blockSender.onClosed();
        puts.onClosed();
        chains.onClosed();
    }
}
