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
final class AccessConfigReader {

    private static final String CONSENT = "allow_unauthenticated";

    private final Settings from;

    AccessConfigReader(Settings from) {
        this.from = from;
    }

    AccessConfig read(AccessConfig defaultValue) {
        List<TenantConfig> tenants = tenants();
        List<ListenerConfig> listeners = listeners(defaultValue.listeners().getFirst());
        List<TrustDomainConfig> domains = TrustDomainConfig.read(from);
        List<String> problems = AccessConfig.findProblems(listeners, tenants, domains);
        problems.forEach(from::addProblem);
        return problems.isEmpty()
                ? from.getValid(defaultValue, () -> new AccessConfig(listeners, tenants, domains))
                : defaultValue;
    }

    private List<ListenerConfig> listeners(ListenerConfig defaultValue) {
        int items = from.itemCount("listeners");
        if (items == 0) {
            return List.of(listener(ListenerConfig.SHORT_FORM, defaultValue));
        }
        if (from.isAnySet(ListenerConfig.SHORT_FORM)) {
            from.addProblem("listeners are set, and listen (or --address, --port) beside them; it takes one of them");
            listener(ListenerConfig.SHORT_FORM, defaultValue);
        }
        List<ListenerConfig> listeners = new ArrayList<>();
        for (int i = 0; i < items; i++) {
            listeners.add(listener("listeners." + i, defaultValue));
        }
        Set<String> consented = new LinkedHashSet<>(from.list(CONSENT, List.of(), String::strip));
        listeners.forEach(each -> consented.remove(each.name()));
        consented.forEach(name -> from.addProblem(CONSENT + " has " + name + "; there are "
                + String.join(", ", listeners.stream().map(ListenerConfig::name).toList())));
        return listeners;
    }

    private ListenerConfig listener(String path, ListenerConfig defaultValue) {
        boolean only = path.equals(ListenerConfig.SHORT_FORM);
        String name = only ? path : from.get(path + ".name", path, String::strip);
        String address = from.get(path + ".address", defaultValue.address(), String::strip);
        int port = from.get(path + ".port", defaultValue.port(), SettingParsers.integerParser(0, 65_535));
        ListenerAuthConfig entry = listenerAuth(path, name);
        Set<ListenProtocol> protocols = protocols(path, entry.auth());
        TlsConfig tls = TlsConfig.read(from, path + ".tls");
        return from.getValid(
                new ListenerConfig(
                        path,
                        name,
                        defaultValue.address(),
                        0,
                        ListenerConfig.allProtocols(),
                        ListenerAuthConfig.UNRESTRICTED),
                () -> new ListenerConfig(path, name, address, port, protocols, entry, tls));
    }

    private static @Nullable String requireNotBlank(String text) {
        return text.isEmpty() ? null : text;
    }

    private ListenerAuthConfig listenerAuth(String path, String name) {
        String tenant = from.get(path + ".tenant", "", String::strip);
        boolean auth = from.get(path + ".auth", false, SettingParsers::parseBoolean);
        List<String> cidrs = from.list(path + ".cidrs", List.of(), SettingParsers::parseCidr);
        List<String> hosts = from.list(path + ".hosts", List.of(), String::strip);
        if (!path.equals(ListenerConfig.SHORT_FORM)) {
            boolean consent = from.list(CONSENT, List.of(), String::strip).contains(name);
            return new ListenerAuthConfig(tenant.isEmpty() ? null : tenant, auth, consent, cidrs, hosts);
        }
        boolean consent = from.get(path + ".without_auth", false, SettingParsers::parseBoolean);
        return consent && !auth
                ? new ListenerAuthConfig(
                        tenant.isEmpty() ? TenantConfig.DEFAULT : tenant,
                        false,
                        true,
                        cidrs.isEmpty() ? List.of("0.0.0.0/0", "::/0") : cidrs,
                        hosts.isEmpty() ? List.of("*") : hosts)
                : new ListenerAuthConfig(tenant.isEmpty() ? null : tenant, auth, consent, cidrs, hosts);
    }

    /// Where clients have to say who they are, what cannot be said there and what tells of everybody's values is
    /// spoken only when it is asked for.
    private Set<ListenProtocol> protocols(String path, boolean auth) {
        Set<ListenProtocol> usual =
                auth ? EnumSet.of(ListenProtocol.RESP, ListenProtocol.HTTP) : ListenerConfig.allProtocols();
        List<ListenProtocol> asked = from.list(path + ".protocols", List.of(), AccessConfigReader::protocol);
        if (path.equals(ListenerConfig.SHORT_FORM)) {
            ListenProtocol only = from.get(path + ".protocol", ListenProtocol.AUTO, AccessConfigReader::protocol);
            if (only == ListenProtocol.HTTP) {
                return EnumSet.of(only, ListenProtocol.PAGES);
            }
            asked = asked.isEmpty() ? List.of(only) : asked;
        }
        return asked.isEmpty() || asked.contains(ListenProtocol.AUTO) ? usual : EnumSet.copyOf(asked);
    }

    private static ListenProtocol protocol(String text) {
        return SettingParsers.parseEnum(ListenProtocol.class, text);
    }

    private List<TenantConfig> tenants() {
        List<TenantConfig> tenants = new ArrayList<>();
        int items = from.itemCount("tenants");
        for (int i = 0; i < items; i++) {
            tenants.add(tenant("tenants." + i));
        }
        if (tenants.stream().noneMatch(each -> each.name().equals(TenantConfig.DEFAULT))) {
            boolean free = tenants.stream().noneMatch(each -> each.user().equals(TenantConfig.DEFAULT));
            tenants.add(free ? TenantConfig.defaultTenant() : TenantConfig.defaultTenantWithoutUser());
        }
        return tenants;
    }

    private TenantConfig tenant(String path) {
        String name = from.get(path + ".name", path, String::strip);
        String user = from.get(path + ".user", name, String::strip);
        String hash = from.get(path + ".password_hash", "", String::strip);
        String file = from.get(path + ".password_file", "", String::strip);
        long quota = from.get(path + ".quota", 0L, SettingParsers::parseBytes);
        int weight = from.get(path + ".weight", 1, SettingParsers.integerParser(1, TenantConfig.MAX_WEIGHT));
        String secrets = from.get(path + ".secret_file", "", String::strip);
        KeyOwnershipConfig labels = new KeyOwnershipConfig(
                from.list(path + ".prefixes", List.of(), Function.identity()),
                from.list(path + ".salts", List.of(), String::strip),
                requireNotBlank(from.get(path + ".salt_file", "", String::strip)));
        return from.getValid(
                new TenantConfig(path, path, path, null, null, 0),
                () -> new TenantConfig(
                        path,
                        name,
                        user,
                        requireNotBlank(hash),
                        requireNotBlank(file),
                        quota,
                        weight,
                        requireNotBlank(secrets),
                        labels));
    }
}
