package io.kvcache.server.config;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Reads listeners and tenants: `listen` for one of them, or the list `listeners`; the lists `tenants`
/// and `domains`.
final class AccessReader {

    private static final String CONSENT = "allow_unauthenticated";

    private final Settings from;

    AccessReader(Settings from) {
        this.from = from;
    }

    AccessConfig read(AccessConfig otherwise) {
        List<TenantConfig> tenants = tenants();
        List<ListenConfig> listeners = listeners(otherwise.listeners().getFirst());
        List<DomainConfig> domains = DomainConfig.read(from);
        List<String> problems = AccessConfig.problems(listeners, tenants, domains);
        problems.forEach(from::problem);
        return problems.isEmpty()
                ? from.checked(otherwise, () -> new AccessConfig(listeners, tenants, domains))
                : otherwise;
    }

    private List<ListenConfig> listeners(ListenConfig otherwise) {
        int items = from.items("listeners");
        if (items == 0) {
            return List.of(listener(ListenConfig.SHORT_FORM, otherwise));
        }
        if (from.has(ListenConfig.SHORT_FORM)) {
            from.problem("listeners are set, and listen (or --address, --port) beside them; it takes one of them");
            listener(ListenConfig.SHORT_FORM, otherwise);
        }
        List<ListenConfig> listeners = new ArrayList<>();
        for (int i = 0; i < items; i++) {
            listeners.add(listener("listeners." + i, otherwise));
        }
        Set<String> consented = new LinkedHashSet<>(from.list(CONSENT, List.of(), String::strip));
        listeners.forEach(each -> consented.remove(each.name()));
        consented.forEach(name -> from.problem(CONSENT + " has " + name + "; there are "
                + String.join(", ", listeners.stream().map(ListenConfig::name).toList())));
        return listeners;
    }

    private ListenConfig listener(String path, ListenConfig otherwise) {
        boolean only = path.equals(ListenConfig.SHORT_FORM);
        String name = only ? path : from.get(path + ".name", path, String::strip);
        String address = from.get(path + ".address", otherwise.address(), String::strip);
        int port = from.get(path + ".port", otherwise.port(), Values.integer(0, 65_535));
        EntryConfig entry = entry(path, name);
        Set<ListenProtocol> protocols = protocols(path, entry.auth());
        TlsConfig tls = TlsConfig.read(from, path + ".tls");
        return from.checked(
                new ListenConfig(path, name, otherwise.address(), 0, ListenConfig.everything(), EntryConfig.OPEN),
                () -> new ListenConfig(path, name, address, port, protocols, entry, tls));
    }

    private static @Nullable String given(String text) {
        return text.isEmpty() ? null : text;
    }

    private EntryConfig entry(String path, String name) {
        String tenant = from.get(path + ".tenant", "", String::strip);
        boolean auth = from.get(path + ".auth", false, Values::truth);
        List<String> cidrs = from.list(path + ".cidrs", List.of(), Values::cidr);
        List<String> hosts = from.list(path + ".hosts", List.of(), String::strip);
        if (!path.equals(ListenConfig.SHORT_FORM)) {
            boolean consent = from.list(CONSENT, List.of(), String::strip).contains(name);
            return new EntryConfig(tenant.isEmpty() ? null : tenant, auth, consent, cidrs, hosts);
        }
        boolean consent = from.get(path + ".without_auth", false, Values::truth);
        return consent && !auth
                ? new EntryConfig(
                        tenant.isEmpty() ? TenantConfig.DEFAULT : tenant,
                        false,
                        true,
                        cidrs.isEmpty() ? List.of("0.0.0.0/0", "::/0") : cidrs,
                        hosts.isEmpty() ? List.of("*") : hosts)
                : new EntryConfig(tenant.isEmpty() ? null : tenant, auth, consent, cidrs, hosts);
    }

    /// Where clients have to say who they are, what cannot be said there and what tells of everybody's values is
    /// spoken only when it is asked for.
    private Set<ListenProtocol> protocols(String path, boolean auth) {
        Set<ListenProtocol> usual =
                auth ? EnumSet.of(ListenProtocol.RESP, ListenProtocol.HTTP) : ListenConfig.everything();
        List<ListenProtocol> asked = from.list(path + ".protocols", List.of(), AccessReader::protocol);
        if (path.equals(ListenConfig.SHORT_FORM)) {
            ListenProtocol only = from.get(path + ".protocol", ListenProtocol.AUTO, AccessReader::protocol);
            if (only == ListenProtocol.HTTP) {
                return EnumSet.of(only, ListenProtocol.PAGES);
            }
            asked = asked.isEmpty() ? List.of(only) : asked;
        }
        return asked.isEmpty() || asked.contains(ListenProtocol.AUTO) ? usual : EnumSet.copyOf(asked);
    }

    private static ListenProtocol protocol(String text) {
        return Values.choice(ListenProtocol.class, text);
    }

    private List<TenantConfig> tenants() {
        List<TenantConfig> tenants = new ArrayList<>();
        int items = from.items("tenants");
        for (int i = 0; i < items; i++) {
            tenants.add(tenant("tenants." + i));
        }
        if (tenants.stream().noneMatch(each -> each.name().equals(TenantConfig.DEFAULT))) {
            boolean free = tenants.stream().noneMatch(each -> each.user().equals(TenantConfig.DEFAULT));
            tenants.add(free ? TenantConfig.anybody() : TenantConfig.nobody());
        }
        return tenants;
    }

    private TenantConfig tenant(String path) {
        String name = from.get(path + ".name", path, String::strip);
        String user = from.get(path + ".user", name, String::strip);
        String hash = from.get(path + ".password_hash", "", String::strip);
        String file = from.get(path + ".password_file", "", String::strip);
        long quota = from.get(path + ".quota", 0L, Values::bytes);
        int weight = from.get(path + ".weight", 1, Values.integer(1, TenantConfig.MOST_WEIGHT));
        String secrets = from.get(path + ".secret_file", "", String::strip);
        LabelConfig labels = new LabelConfig(
                from.list(path + ".prefixes", List.of(), Function.identity()),
                from.list(path + ".salts", List.of(), String::strip),
                given(from.get(path + ".salt_file", "", String::strip)));
        return from.checked(
                new TenantConfig(path, path, path, null, null, 0),
                () -> new TenantConfig(
                        path, name, user, given(hash), given(file), quota, weight, given(secrets), labels));
    }
}
