package io.kvcache.server.access;

import io.kvcache.server.config.EntryConfig;
import io.kvcache.server.config.TenantConfig;
import java.net.SocketAddress;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The way in at one listener.
///
/// **Threads.** Any.
public final class Door {

    private final Logins logins;
    private final @Nullable String bound;
    private final boolean asks;
    private final String usualUser;

    /// @param tenants all there are
    public Door(EntryConfig entry, List<TenantConfig> tenants, Logins logins) {
        this.logins = logins;
        bound = entry.tenant();
        asks = entry.auth();
        usualUser = tenants.stream()
                .filter(each -> each.name().equals(bound))
                .map(TenantConfig::user)
                .findFirst()
                .orElse(TenantConfig.DEFAULT);
    }

    /// One that everybody goes through as the default tenant.
    public static Door open(Logins logins) {
        return new Door(EntryConfig.OPEN, List.of(TenantConfig.anybody()), logins);
    }

    /// Who a client is that has said nothing, or null when it has to say something.
    public @Nullable String everybody() {
        if (asks) {
            return null;
        }
        return bound == null ? TenantConfig.DEFAULT : bound;
    }

    /// Who is meant by a password alone: the user of the listener's tenant, or `default`.
    public String usualUser() {
        return usualUser;
    }

    /// Whether a user has a password.
    public boolean knows(String user) {
        return logins.has(user);
    }

    /// Finds out who a client is.
    ///
    /// @param then told the verdict, at once or later on another thread
    public void ask(SocketAddress from, String user, String password, Consumer<Verdict> then) {
        logins.ask(from, user, password, verdict -> then.accept(here(verdict, from, user)));
    }

    /// The passwords of this moment, for [#isStillIn].
    public Object moment() {
        return logins.moment();
    }

    /// Whether a client that came in by a password is in by it still, without asking again: the passwords are those of
    /// that moment. Counts as one more log-in.
    @SuppressWarnings("ReferenceEquality") // passwords that were read again are others, whatever they are
    public boolean isStillIn(Object moment) {
        boolean still = moment == logins.moment();
        if (still) {
            logins.cameIn();
        }
        return still;
    }

    private Verdict here(Verdict verdict, SocketAddress from, String user) {
        if (verdict.tenant() == null) {
            if (verdict.outcome() == Verdict.Outcome.LATER) {
                logins.log().log(from, user, "not checked, after too many wrong ones");
            } else if (verdict.outcome() == Verdict.Outcome.WRONG) {
                logins.log().log(from, user, "wrong user or password");
            }
            return verdict;
        }
        if (bound != null && !bound.equals(verdict.tenant())) {
            logins.wasElsewhere();
            logins.log().log(from, user, "the listener is of tenant " + bound);
            return Verdict.WRONG;
        }
        logins.cameIn();
        return verdict;
    }
}
