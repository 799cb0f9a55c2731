package io.kvcache.transport.remote;

import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.link.Connector;
import io.kvcache.transport.link.DisconnectReason;
import io.kvcache.transport.shm.OneSidedCounters;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Collection;
import java.util.List;

/// The servers of one cache, the first choice first, and how a session with one begins.
///
/// **Threads.** Any.
final class Ways {

    private static final System.Logger LOG = System.getLogger(Ways.class.getName());

    private final List<Way> ways;
    private final OneSidedCounters counters;
    private final Deadlines deadlines;

    /// One of the servers.
    ///
    /// @param name its address
    /// @param carriers what opens connections
    /// @param forget what was chosen leads nowhere
    record Way(String name, Chooser carriers, Runnable forget, RemoteOptions options) {

        /// By what opens connections.
        static Way by(Connector connector, RemoteOptions options) {
            Carriers.Choice choice = new Carriers.Choice(connector, connector.toString());
            return new Way(connector.toString(), (_, _) -> choice, () -> {}, options);
        }

        /// By what is chosen when a session begins.
        static Way by(Carriers carriers, RemoteOptions options) {
            return new Way(carriers.toString(), carriers::choose, carriers::forget, options);
        }
    }

    /// Says what opens connections.
    @FunctionalInterface
    interface Chooser {
        Carriers.Choice choose(RemoteOptions options, Deadlines deadlines) throws IOException, CallFailed;
    }

    /// What a session begins with.
    ///
    /// @param registered namespaces that it is to know
    /// @param earlier sessions of this cache before it
    /// @param ended hears that it is over, once or more
    record Beginning(Collection<Namespace> registered, long earlier, Runnable ended) {}

    /// @param ways at least one
    Ways(List<Way> ways, OneSidedCounters counters, Deadlines deadlines) {
        this.ways = ways;
        this.counters = counters;
        this.deadlines = deadlines;
    }

    int count() {
        return ways.size();
    }

    String name(int way) {
        return ways.get(way).name;
    }

    /// Begins a session in place of one that is lost. A namespace that the server refuses is a miss
    /// there.
    ///
    /// @throws UncheckedIOException when it cannot be reached, or does not want this client
    Attachment begin(int way, Beginning beginning) {
        return begin(way, beginning, Ways::again);
    }

    /// Begins a session in place of one that is as it should be.
    ///
    /// @throws UncheckedIOException when it cannot be reached, or does not want this client, or one
    ///     of its namespaces
    Attachment beginAsGood(int way, Beginning beginning) {
        return begin(way, beginning, Attachment::register);
    }

    /// Makes one namespace known.
    @FunctionalInterface
    private interface Registration {
        void of(Attachment attachment, Namespace namespace) throws CallFailed;
    }

    private Attachment begin(int way, Beginning beginning, Registration registration) {
        Way to = ways.get(way);
        try {
            Carriers.Choice by = to.carriers.choose(to.options, deadlines);
            Attachment.Means means = new Attachment.Means(to.options, counters, beginning.earlier, by.why());
            Attachment attachment = open(to, by.connector(), means, beginning);
            furnish(attachment, beginning.registered, registration);
            return attachment;
        } catch (IOException unreachable) {
            throw new UncheckedIOException("cannot reach " + to.name + ": " + unreachable.getMessage(), unreachable);
        } catch (CallFailed refused) {
            throw new UncheckedIOException(
                    to.name + " refuses: " + refused.getMessage(), new IOException(String.valueOf(refused.status())));
        }
    }

    private Attachment open(Way to, Connector by, Attachment.Means means, Beginning beginning)
            throws IOException, CallFailed {
        try {
            return Attachment.open(by, means, deadlines, beginning.ended);
        } catch (IOException | CallFailed failed) {
            to.forget.run();
            throw failed;
        }
    }

    private static void furnish(Attachment attachment, Collection<Namespace> registered, Registration registration)
            throws CallFailed {
        boolean good = false;
        try {
            attachment.share();
            attachment.join();
            for (Namespace namespace : registered) {
                registration.of(attachment, namespace);
            }
            good = true;
        } finally {
            if (!good) {
                attachment.close(DisconnectReason.SHUTDOWN);
            }
        }
    }

    private static void again(Attachment attachment, Namespace namespace) throws CallFailed {
        try {
            attachment.register(namespace);
        } catch (CallFailed failed) {
            if (!failed.answered()) {
                throw failed;
            }
            LOG.log(System.Logger.Level.WARNING, namespace + " is refused after a reconnect: " + failed.getMessage());
        }
    }
}
