package io.kvcache.transport.endpoint;

import io.kvcache.transport.endpoint.EndpointRequest.RequestException;
import io.kvcache.transport.net.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;

/// Passes each request of one connection to the handler of its kind.
///
/// A handler reads the whole body first: a malformed one ends the connection. A valid request that fails gets an
/// error reply, and the connection goes on.
final class RequestDispatcher {

    private final EndpointContext context;
    private final ClientSession session;
    private final ChainCache chains;
    private final LeaseRequestHandler leases;
    private final PutRequestHandler puts;
    private final StoreRequestHandler store;
    private final RangeRequestHandler ranges;
    private final RegionRequestHandler regions;
    private final CommandRequestHandler commands;

    RequestDispatcher(EndpointContext context, ClientSession session) {
        this.context = context;
        this.session = session;
        chains = new ChainCache(session, context.options().limits().heap(), context.chains());
        leases = new LeaseRequestHandler(context, session, chains);
        puts = new PutRequestHandler(context, session, chains);
        store = new StoreRequestHandler(context, session, chains);
        ranges = new RangeRequestHandler(context, session, chains);
        regions = new RegionRequestHandler(context, session);
        commands = new CommandRequestHandler(context, session);
    }

    ClientSession session() {
        return session;
    }

    void onMessage(MessageType type, EndpointRequest request, BodyReader body) throws ProtocolException {
        leases.onNextRequest();
        try {
            handle(type, request, body);
        } catch (RequestException | RuntimeException failed) {
            context.reject(request, failed);
        }
    }

    private void handle(MessageType type, EndpointRequest request, BodyReader body)
            throws ProtocolException, RequestException {
        switch (type) {
            case PING, RENEW -> request.reply(new BodyWriter());
            case CHAIN -> chains.define(body);
            case ACQUIRE -> leases.acquire(request, body);
            case READ -> leases.read(request, body);
            case READ_RANGE -> ranges.read(request, body);
            case RELEASE -> leases.release(body);
            case GET_OBJECT -> leases.getObject(request, body);
            case SHARE -> leases.share(request);
            case FABRIC -> leases.fabric(request);
            case PLACES -> leases.places(request, body);
            case TOUCH -> leases.touch(body);
            case RESERVE -> puts.reserve(request, body);
            case RESERVE_OBJECT -> puts.reserveObject(request, body);
            case ABANDON -> puts.abandon(body);
            case STAGE -> puts.stage(request, body);
            case FILL_STAGED -> puts.fillStaged(request, body);
            case PUT_STAGED -> puts.putStaged(request, body);
            case PUT_OBJECT_STAGED -> puts.putObjectStaged(request, body);
            case REGION -> regions.register(request, body);
            case DROP_REGION -> regions.drop(request, body);
            case COPY -> regions.copy(request, body);
            case REGISTER -> store.register(request, body);
            case MATCH -> store.match(request, body);
            case CONTAINS_OBJECT -> store.containsObject(request, body);
            case DROP_CHAIN -> store.dropChain(request, body);
            case DROP_OBJECT -> store.dropObject(request, body);
            case DROP_NAMESPACE -> store.dropNamespace(request, body);
            case HINT -> store.hint(request, body);
            case HINT_OBJECTS -> store.hintObjects(request, body);
            case MATCH_OBJECTS -> store.matchObjects(request, body);
            case LIST_OBJECTS -> store.listObjects(request, body);
            case DROP_OBJECTS -> store.dropObjects(request, body);
            case STATS -> store.stats(request);
            case EVENTS -> store.events(request, body);
            case SNAPSHOT -> store.snapshot(request, body);
            case FLUSH -> store.flush(request, body);
            case VIEW -> store.view(request, body);
            case FILL, PUT, PUT_OBJECT, EXECUTE ->
                throw new ProtocolException(type + " without a payload; allowed: 1 byte and up");
            case ERROR, HELLO, AUTH, PROGRESS, DATA ->
                throw new ProtocolException("message " + type + " from a client that is in; allowed: requests");
        }
    }

    PayloadSink onPayload(FrameHeader header, EndpointRequest request, BodyReader body) throws ProtocolException {
        leases.onNextRequest();
        try {
            return switch (request.type()) {
                case FILL -> puts.fill(header, request, body);
                case PUT -> puts.put(header, request, body);
                case PUT_OBJECT -> puts.putObject(header, request, body);
                case EXECUTE -> commands.execute(header, request, body);
                default -> throw new RequestException(Status.INVALID, request.type() + " takes no payload");
            };
        } catch (RequestException refused) {
            return PayloadSink.discard(header.payloadBytes(), sum -> request.reject(refused));
        }
    }

    /// Releases everything, as the connection has ended.
    void onClosed() {
        leases.onClosed();
        puts.onClosed();
        commands.onClosed();
        chains.onClosed();
    }
}
