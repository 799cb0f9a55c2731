package io.kvcache.transport.endpoint;

import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// How many connections there are: so many of clients that have shown who they are, and as many of
/// strangers.
///
/// A tenant may have one more while it has fewer than are free, so one tenant takes half of them at most and every
/// other
/// finds some. Where tenants are not told apart, clients may take all.
///
/// Strangers take no place of a client. One too many has another give way: of the place that most come from
/// the one that has been there longest. So who opens connections and says nothing keeps others out only if
/// he opens that many in the moment that a handshake takes.
///
/// **Threads.** Any.
final class Admission {

    private final int most;

    private final Crowds<Conversation> strangers = new Crowds<>();
    private final Map<Conversation, String> clients = new HashMap<>();
    private final Map<String, Integer> ofTenant = new HashMap<>();

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
    ///
    /// @param tenant that he is, or nothing where tenants are not told apart
    synchronized boolean welcome(Conversation stranger, String tenant) {
        int free = most - clients.size();
        boolean fair = tenant.isEmpty() || ofTenant.getOrDefault(tenant, 0) < free;
        if (free <= 0 || !fair || !strangers.remove(stranger)) {
            return false;
        }
        clients.put(stranger, tenant);
        ofTenant.merge(tenant, 1, Integer::sum);
        return true;
    }

    /// A connection is over.
    synchronized void gone(Conversation whose) {
        strangers.remove(whose);
        String tenant = clients.remove(whose);
        if (tenant != null) {
            ofTenant.merge(tenant, -1, (before, less) -> before + less == 0 ? null : before + less);
        }
    }
}
