package io.kvcache.transport.endpoint;

import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Map;
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

    /// In the order in which they came.
    private final Set<Conversation> strangers = new LinkedHashSet<>();

    private final Set<Conversation> clients = new HashSet<>();

    Admission(int most) {
        this.most = most;
    }

    /// A stranger comes; answers who has to give way, or null.
    synchronized @Nullable Conversation come(Conversation stranger) {
        strangers.add(stranger);
        if (strangers.size() <= most) {
            return null;
        }
        Map<String, Integer> places = new HashMap<>();
        strangers.forEach(each -> places.merge(each.outlet().place(), 1, Integer::sum));
        int crowd = places.values().stream().max(Comparator.naturalOrder()).orElse(0);
        Conversation first = strangers.stream()
                .filter(each -> places.getOrDefault(each.outlet().place(), 0) == crowd)
                .findFirst()
                .orElse(stranger);
        strangers.remove(first);
        return first;
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
