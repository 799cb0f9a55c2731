package io.kvcache.transport.endpoint;

import io.kvcache.core.SharedMemory;
import io.kvcache.transport.link.CloseReason;
import io.kvcache.transport.link.Outlet;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.Challenge;
import io.kvcache.transport.wire.Hello;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Proof;
import io.kvcache.transport.wire.Secret;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;
import io.kvcache.transport.wire.Welcome;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// The first two messages of a connection: HELLO, which is answered by a challenge, and AUTH, which is
/// answered by a session.
final class Greeting {

    private final Endpoint endpoint;
    private final Conversation conversation;
    private final Outlet outlet;
    private @Nullable Hello hello;
    private @Nullable Challenge challenge;
    private Access access = Access.open();
    private boolean began;

    /// @param conversation whose beginning this is
    Greeting(Endpoint endpoint, Conversation conversation) {
        this.endpoint = endpoint;
        this.conversation = conversation;
        outlet = conversation.outlet();
    }

    /// Whether this connection began its session, and so ends it.
    boolean began() {
        return began;
    }

    /// Answers the session, once there is one.
    @Nullable
    Session message(MessageType type, Request request, BodyReader body) throws Violation {
        Hello said = hello;
        Challenge asked = challenge;
        if (type == MessageType.HELLO && said == null) {
            greet(Hello.read(body), request);
            return null;
        }
        if (type == MessageType.AUTH && said != null && asked != null) {
            return admit(said, asked, new Secret(body.bytes("proof", Proof.BYTES)), request);
        }
        String allowed = said == null ? "HELLO" : "AUTH";
        throw new Violation("message %s at the beginning; allowed: %s".formatted(type, allowed));
    }

    private void greet(Hello said, Request request) throws Violation {
        if (said.version() < Hello.VERSION) {
            throw new Violation("version = %d; allowed: %d and up".formatted(said.version(), Hello.VERSION));
        }
        access = endpoint.service().options().access().now();
        Service service = endpoint.service().of(access.limit(said.tenant()));
        SharedMemory shared = service.cache().sharedMemory();
        long memory = shared == null ? 0 : Hello.SHARED_MEMORY;
        long staging =
                shared == null || shared.maxStagingBytes() == 0 ? 0 : Challenge.STAGING | Challenge.STAGED_OBJECTS;
        long fabric = service.options().fabric() == null ? 0 : Challenge.FABRIC;
        Challenge asked = new Challenge(
                Hello.VERSION,
                access.guarded(),
                memory | fabric | staging | Challenge.PUTS | Challenge.SAYINGS | Challenge.OBJECT_SAYINGS,
                Secret.random(Hello.NONCE_BYTES));
        hello = said;
        challenge = asked;
        outlet.send(asked.frame(request.number()));
    }

    private @Nullable Session admit(Hello said, Challenge asked, Secret shown, Request request) {
        Session joined = said.begins() ? null : joined(said);
        Secret right;
        boolean unseen;
        synchronized (endpoint.tries().lock(outlet.place())) {
            unseen = access.guarded() && joined == null && endpoint.tries().tooMany(outlet.place(), access);
            right = unseen ? null : right(said, asked, shown, joined);
            if (!unseen && right == null && access.guarded()) {
                endpoint.tries().wrong(outlet.place(), said.tenant());
            }
        }
        if (unseen) {
            return refused(
                    request,
                    Status.BUSY,
                    "too many wrong proofs came from there; they are looked at again within "
                            + Tries.WRONG_LASTS.toSeconds() + " s");
        }
        if (right == null) {
            return refused(request, Status.UNAUTHORIZED, "the proof is wrong: another secret, or an unknown tenant");
        }
        if (said.begins() && endpoint.service().draining().begun()) {
            request.refuse(Status.BUSY, Draining.TEXT);
            outlet.close(CloseReason.SHUTDOWN);
            return null;
        }
        String tenant = access.tellsTenantsApart() ? said.tenant() : "";
        if (!endpoint.admission().welcome(conversation, tenant)) {
            int most = endpoint.service().options().most().connections();
            String why = tenant.isEmpty()
                    ? most + " connections are open; allowed: " + most
                    : "tenant \"" + tenant + "\" has as many connections open as are free; allowed: fewer, of " + most;
            request.refuse(Status.BUSY, why);
            outlet.close(CloseReason.OVER_LIMIT);
            return null;
        }
        Session session = said.begins() ? endpoint.begin(said, access, right) : joined;
        if (session == null || !session.join(outlet)) {
            return refused(request, Status.UNAUTHORIZED, "there is no such session");
        }
        began = said.begins();
        Secret mine = access.guarded() ? new Proof(right, said, asked).ofServer() : Secret.none(Proof.BYTES);
        int leaseMillis = (int) TimeUnit.NANOSECONDS.toMillis(session.leaseNanos());
        outlet.send(new Welcome(session.number(), session.ticket(), leaseMillis, mine).frame(request.number()));
        return session;
    }

    /// The session of a ticket, for the tenant that began it.
    private @Nullable Session joined(Hello said) {
        Session session = endpoint.find(said.session(), said.ticket());
        return session != null && session.tenant().equals(said.tenant()) ? session : null;
    }

    /// The secret that the client has shown to know, or null. Those of the moment are good, and for a
    /// session the one that it began with: whoever is in may open more connections.
    private @Nullable Secret right(Hello said, Challenge asked, Secret shown, @Nullable Session joined) {
        List<Secret> good = new ArrayList<>(access.secretsOf(said.tenant()));
        if (joined != null) {
            good.add(joined.secret());
        }
        Secret right = null;
        for (Secret each : good) {
            if (!access.guarded() || shown.equals(new Proof(each, said, asked).ofClient())) {
                right = each;
            }
        }
        return right;
    }

    private @Nullable Session refused(Request request, Status status, String why) {
        request.refuse(status, why);
        outlet.close(CloseReason.UNAUTHORIZED);
        return null;
    }
}
