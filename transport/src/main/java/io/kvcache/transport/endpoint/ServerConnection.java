package io.kvcache.transport.endpoint;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.shm.SharedMemory;
import io.kvcache.transport.endpoint.EndpointContext.GracefulShutdown;
import io.kvcache.transport.endpoint.EndpointRequest.RequestException;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameHandler;
import io.kvcache.transport.net.FrameSink;
import io.kvcache.transport.net.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.Handshake.Challenge;
import io.kvcache.transport.wire.Handshake.Hello;
import io.kvcache.transport.wire.Handshake.Proof;
import io.kvcache.transport.wire.Handshake.Welcome;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Secret;
import io.kvcache.transport.wire.Status;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// One connection, from its first frame to its last: the handshake, then requests in order.
///
/// The handshake is HELLO, which is answered by a challenge, and AUTH, which is answered by a session.
final class ServerConnection implements FrameHandler {

    /// Limit before authentication: HELLO with the longest tenant name, and as much again for later versions.
    static final int MAX_HANDSHAKE_BODY_BYTES = 128 << 10;

    private final Endpoint endpoint;
    private final FrameSink frameSink;
    private final EndpointStats.Counters counters;
    private final long openedNanos;
    private @Nullable Hello hello;
    private @Nullable Challenge challenge;
    private EndpointAuthentication endpointAuth = EndpointAuthentication.unauthenticated();

    /// True if this connection began the session, and so ends it.
    private boolean startedSession;

    private @Nullable RequestDispatcher requestDispatcher;
    private volatile @Nullable ClientSession session;

    /// @param since when the connection was opened
    ServerConnection(Endpoint endpoint, FrameSink frameSink, long since) {
        this.endpoint = endpoint;
        this.frameSink = frameSink;
        this.openedNanos = since;
        counters = endpoint.context().counters();
    }

    /// Returns whether authentication has taken too long.
    boolean isHandshakeOverdue(long nowNanos, long handshakeNanos) {
        return session == null && nowNanos - openedNanos > handshakeNanos;
    }

    FrameSink frameSink() {
        return frameSink;
    }

    /// A long frame takes its time, and its sender is not silent.
    @Override
    public void onBytesReceived() {
        RequestDispatcher open = requestDispatcher;
        if (open != null) {
            onActivity(open.session());
        }
    }

    @Override
    public int maxBodyBytes() {
        return requestDispatcher == null ? MAX_HANDSHAKE_BODY_BYTES : FrameHeader.MAX_BODY_BYTES;
    }

    @Override
    public void onMessage(FrameHeader header, BodyReader body) throws ProtocolException {
        MessageType type = MessageType.of(header.type());
        if (header.isReply() || type == MessageType.ERROR) {
            return;
        }
        counters.requests.increment();
        RequestDispatcher open = requestDispatcher;
        if (type == null) {
            refuseUnknown(header);
        } else if (open == null) {
            handshake(type, header, body);
        } else {
            open.onMessage(type, EndpointRequest.of(type, header, frameSink, counters), body);
        }
    }

    private void refuseUnknown(FrameHeader header) {
        counters.refusals.increment();
        if (header.request() != 0) {
            String text = "message type " + header.type() + " is not known here";
            frameSink.send(BodyWriter.errorReply(header.type(), header.request(), Status.UNSUPPORTED, text));
        }
    }

    private void handshake(MessageType type, FrameHeader header, BodyReader body) throws ProtocolException {
        ClientSession welcomed = handshake(type, EndpointRequest.of(type, header, frameSink, counters), body);
        if (welcomed != null) {
            onActivity(welcomed);
            Hello said = hello;
            EndpointContext context = endpoint.context().forTenant(welcomed.onlyTenant());
            requestDispatcher = new RequestDispatcher(
                    said == null ? context : context.forCapabilities(said.capabilities()), welcomed);
            session = welcomed;
        }
    }

    /// Returns the session, once there is one.
    private @Nullable ClientSession handshake(MessageType type, EndpointRequest request, BodyReader body)
            throws ProtocolException {
        Hello said = hello;
        Challenge asked = challenge;
        if (type == MessageType.HELLO && said == null) {
            onHello(Hello.read(body), request);
            return null;
        }
        if (type == MessageType.AUTH && said != null && asked != null) {
            return admit(said, asked, new Secret(body.bytes("proof", Proof.BYTES)), request);
        }
        String allowed = said == null ? "HELLO" : "AUTH";
        throw new ProtocolException("message %s at the beginning; allowed: %s".formatted(type, allowed));
    }

    private void onHello(Hello said, EndpointRequest request) throws ProtocolException {
        if (said.version() < Hello.VERSION) {
            throw new ProtocolException("version = %s; allowed: %s and up".formatted(said.version(), Hello.VERSION));
        }
        EndpointOptions options = endpoint.context().options();
        endpointAuth = said.isServer() ? options.serverAuth() : options.auth().current();
        EndpointContext endpointContext = endpoint.context().forTenant(endpointAuth.tenantRestriction(said.tenant()));
        SharedMemory shared = endpointContext.sharedMemory();
        long memory = shared == null ? 0 : Hello.SHARED_MEMORY;
        long staging = shared == null || shared.maxStagingBytes() == 0 ? 0 : Challenge.STAGING;
        long fabric = endpointContext.options().fabric() == null ? 0 : Challenge.FABRIC;
        Challenge asked = new Challenge(
                Math.min(said.version(), Hello.VERSION),
                endpointAuth.requiresProof(),
                memory | fabric | staging,
                Secret.random(Hello.NONCE_BYTES));
        hello = said;
        challenge = asked;
        frameSink.send(asked.frame(request.number()));
    }

    private @Nullable ClientSession admit(Hello said, Challenge asked, Secret shown, EndpointRequest request) {
        ClientSession joined = said.startsSession() ? null : joinedSession(said);
        Secret right;
        boolean unseen;
        synchronized (endpoint.authThrottle().lockFor(frameSink.peerAddress())) {
            unseen = endpointAuth.requiresProof()
                    && joined == null
                    && endpoint.authThrottle().isThrottled(frameSink.peerAddress(), endpointAuth);
            right = unseen ? null : matchingSecret(said, asked, shown, joined);
            if (!unseen && right == null && endpointAuth.requiresProof()) {
                endpoint.authThrottle().recordFailure(frameSink.peerAddress(), said.tenant());
            }
        }
        if (unseen) {
            return reject(
                    request,
                    Status.BUSY,
                    "too many wrong proofs came from there; they are looked at again within "
                            + AuthThrottle.FAILURE_WINDOW.toSeconds() + " s");
        }
        if (right == null) {
            return reject(request, Status.UNAUTHORIZED, "the proof is wrong: another secret, or an unknown tenant");
        }
        if (said.startsSession() && endpoint.context().gracefulShutdown().isStarted()) {
            request.reject(Status.BUSY, GracefulShutdown.REJECTION_MESSAGE);
            frameSink.close(DisconnectReason.SHUTDOWN);
            return null;
        }
        String tenant = endpointAuth.separatesTenants() ? Namespace.ownerOf(said.tenant()) : "";
        if (!endpoint.connectionLimiter().admit(this, tenant)) {
            int most = endpoint.context().options().limits().connections();
            String why = tenant.isEmpty()
                    ? most + " connections are open; allowed: " + most
                    : "tenant \"" + tenant + "\" has as many connections open as are free; allowed: fewer, of " + most;
            request.reject(Status.BUSY, why);
            frameSink.close(DisconnectReason.OVER_LIMIT);
            return null;
        }
        ClientSession session = said.startsSession() ? endpoint.beginSession(said, endpointAuth, right) : joined;
        if (session == null || !session.addConnection(frameSink)) {
            return reject(request, Status.UNAUTHORIZED, "there is no such session");
        }
        startedSession = said.startsSession();
        Secret mine =
                endpointAuth.requiresProof() ? new Proof(right, said, asked).serverProof() : Secret.zeros(Proof.BYTES);
        int leaseMillis = (int) TimeUnit.NANOSECONDS.toMillis(session.leaseNanos());
        frameSink.send(new Welcome(session.number(), session.ticket(), leaseMillis, mine).frame(request.number()));
        return session;
    }

    /// The session of a ticket, for the client that began it.
    private @Nullable ClientSession joinedSession(Hello said) {
        ClientSession session = endpoint.findSession(said.session(), said.ticket());
        boolean same = session != null
                && session.tenant().equals(said.tenant())
                && session.isServer() == said.isServer(); // a client may not become one by joining
        return same ? session : null;
    }

    /// The secret that the client has proved to know, or null. The present secrets are good, and for a session the
    /// one that it began with: an authenticated client may open more connections.
    private @Nullable Secret matchingSecret(Hello said, Challenge asked, Secret shown, @Nullable ClientSession joined) {
        List<Secret> good = new ArrayList<>(endpointAuth.secretsOf(said.tenant()));
        if (joined != null) {
            good.add(joined.secret());
        }
        Secret right = null;
        for (Secret each : good) {
            if (!endpointAuth.requiresProof() || shown.equals(new Proof(each, said, asked).clientProof())) {
                right = each;
            }
        }
        return right;
    }

    private @Nullable ClientSession reject(EndpointRequest request, Status status, String why) {
        request.reject(status, why);
        frameSink.close(DisconnectReason.UNAUTHORIZED);
        return null;
    }

    private void onActivity(ClientSession by) {
        by.recordActivity(endpoint.nowNanos());
    }

    @Override
    public PayloadSink onPayload(FrameHeader header, BodyReader body) throws ProtocolException {
        MessageType type = MessageType.of(header.type());
        RequestDispatcher open = requestDispatcher;
        if (open == null) {
            throw new ProtocolException("a payload before AUTH; allowed: HELLO and AUTH, without");
        }
        counters.requests.increment();
        if (type == null || header.isReply()) {
            return PayloadSink.discard(header.payloadBytes(), sum -> refuseUnknown(header));
        }
        return open.onPayload(header, EndpointRequest.of(type, header, frameSink, counters), body);
    }

    @Override
    public void onClosed(DisconnectReason reason) {
        counters.countClosed(reason);
        RequestDispatcher open = requestDispatcher;
        if (open != null) {
            open.onClosed();
            open.session().removeConnection(frameSink);
            if (startedSession) {
                open.session().close(DisconnectReason.SESSION_OVER);
            }
        }
        endpoint.removeConnection(this, open == null ? null : open.session());
    }

    /// Passes each request of one connection to the handler of its kind.
    ///
    /// A handler reads the whole body first: a malformed one ends the connection. A valid request that fails
    /// gets an error reply, and the connection goes on.
    static final class RequestDispatcher {

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
}
