package io.kvcache.transport.endpoint;

import java.util.HashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// How many connections there are: so many of clients that have shown who they are, and as many of
/// strangers.
///
/// Strangers take no place of a client. One too many has another give way: of the place that most come from
/// the one that has been there longest. So who opens connections and says nothing keeps others out only if
/// he opens that many in the moment that a handshake takes.
///
/// **Threads.** Any.
final class Admission {

    private final int most;

    private final Crowds<Conversation> strangers = new Crowds<>();
    private final Set<Conversation> clients = new HashSet<>();

    Admission(int most) {
        this.most = most;
    }

    /// A stranger comes; answers who has to give way, or null.
    @Nullable
    Conversation come(Conversation stranger) {
        return come(stranger, stranger.outlet().place());
    }

    private synchronized @Nullable Conversation come(Conversation stranger, String place) {
        strangers.add(stranger, place);
        Conversation tooMany = strangers.size() <= most ? null : strangers.longestOfLargest();
        if (tooMany != null) {
            strangers.remove(tooMany);
        }
        return tooMany;
    }

    /// A stranger has shown who he is; answers whether there is a place for him.
    synchronized boolean welcome(Conversation stranger) {
        if (clients.size() >= most || !strangers.remove(stranger)) {
            return false;
        }
        return clients.add(stranger);
    }

    /// A connection is over.
    synchronized void gone(Conversation whose) {
        strangers.remove(whose);
        clients.remove(whose);
    }
}
