package io.kvcache.transport.endpoint;

import io.kvcache.transport.link.Landing;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;

/// Hands the requests of one connection to those who know how.
final class Requests {

    private final Service service;
    private final Session session;
    private final ChainSlots chains;
    private final Bytes bytes;
    private final BlockVerbs blocks;
    private final PutVerbs puts;
    private final StagedVerbs staged;
    private final ObjectVerbs objects;
    private final StoreVerbs store;
    private final ShareVerbs share;
    private final WayVerbs ways;

    Requests(Service service, Session session) {
        this.service = service;
        this.session = session;
        chains = new ChainSlots(
                session, service.options().most().heap(), service.common().chains());
        bytes = new Bytes(service, session);
        share = new ShareVerbs(service, session, bytes);
        blocks = new BlockVerbs(service, session, chains, bytes, share);
        puts = new PutVerbs(service, session, chains);
        staged = new StagedVerbs(service, session, chains, share);
        objects = new ObjectVerbs(service, session, bytes, share);
        store = new StoreVerbs(service, session);
        ways = new WayVerbs(service);
    }

    Session session() {
        return session;
    }

    void message(MessageType type, Request request, BodyReader body) throws Violation {
        bytes.confirm();
        Parsed parsed;
        try {
            parsed = parse(type, request, body);
        } catch (Refused refused) {
            request.refuse(refused);
            return;
        }
        if (service.draining().refuses(type)) {
            request.refuse(Status.BUSY, Draining.TEXT);
            return;
        }
        service.attempt(request, parsed::run);
    }

    /// A request that has been read: it is sound, but may still be refused.
    @FunctionalInterface
    interface Parsed {
        void run() throws Refused;
    }

    private Parsed parse(MessageType type, Request request, BodyReader body) throws Violation, Refused {
        return switch (type) {
            case PING, RENEW -> () -> request.reply(new BodyWriter());
            case SHARE -> share.share(request);
            case FABRIC -> share.fabric(request);
            case PLACES -> share.places(request, body);
            case TOUCH -> share.touch(body);
            case OFFERS -> ways.offers(request);
            case REGISTER -> store.register(request, body);
            case DROP_NAMESPACE -> store.drop(request, body);
            case STATS -> store.stats(request);
            case EVENTS -> store.events(request, body);
            case SNAPSHOT -> store.snapshot(request, body);
            case FLUSH -> store.flush(request, body);
            case CHAIN -> blocks.chain(body);
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
                throw new Violation(type + " without a payload; allowed: 1 byte and up");
            case ERROR, HELLO, AUTH, PROGRESS, DATA ->
                throw new Violation("message " + type + " from a client that is in; allowed: requests");
        };
    }

    Landing payload(FrameHeader header, Request request, BodyReader body) throws Violation {
        bytes.confirm();
        try {
            return landing(header, request, body);
        } catch (Refused refused) {
            return Landing.discard(header.payloadBytes(), sum -> request.refuse(refused));
        }
    }

    private Landing landing(FrameHeader header, Request request, BodyReader body) throws Violation, Refused {
        return switch (request.type()) {
            case FILL -> puts.fill(header, request, body);
            case PUT -> puts.put(header, request, body);
            case PUT_OBJECT -> puts.putObject(header, request, body);
            case PROBE -> ways.probe(header, request, body);
            default -> throw new Refused(Status.INVALID, request.type() + " takes no payload");
        };
    }

    /// The connection is over.
    void closed() {
        bytes.closed();
        puts.closed();
        chains.closed();
    }
}
