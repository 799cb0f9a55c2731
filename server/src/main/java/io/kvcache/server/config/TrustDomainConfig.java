package io.kvcache.server.config;

import io.kvcache.core.memory.SlabPool;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// A trust domain: tenants that may read each other, with memory of their own. It holds blocks and objects of other
/// JVMs; values of other protocols lie in the memory that all tenants share.
///
/// @param path of its settings: `domains.0`
/// @param tenants by name, at least one
/// @param hostBytes memory of its own, beside `memory.host_bytes`
/// @param sharedMemory name of a folder below `/dev/shm` for files that its tenants on this host map read-only; `off`
///     for none
public record TrustDomainConfig(String path, String name, List<String> tenants, long hostBytes, String sharedMemory) {

    private static final String LIST = "domains";
    private static final String OFF = "off";

    public TrustDomainConfig {
        tenants = List.copyOf(tenants);
        List<String> problems = new ArrayList<>();
        if (tenants.isEmpty()) {
            problems.add(path + ".tenants is not set; it takes names of tenants");
        }
        if (hostBytes < SlabPool.MIN_BYTES) {
            problems.add(
                    path + ".host_bytes is " + hostBytes + "; it takes " + SlabPool.MIN_BYTES + " (32 MiB) and up");
        }
        if (!TransportConfig.isDirectoryName(sharedMemory)) {
            problems.add(path + ".shared_memory is '" + sharedMemory
                    + "'; it takes off, or 1 to 100 letters, digits, dots, dashes and underscores");
        }
        SettingParsers.requireNone(problems);
    }

    /// The folder for files that its tenants map, or null when there are to be none.
    public @Nullable Path sharedMemoryDirectory() {
        return sharedMemory.equals(OFF) ? null : TransportConfig.SHM_DIRECTORY.resolve(sharedMemory);
    }

    static List<TrustDomainConfig> read(Settings from) {
        List<TrustDomainConfig> domains = new ArrayList<>();
        for (int i = 0; i < from.itemCount(LIST); i++) {
            String path = LIST + "." + i;
            String name = from.text(path + ".name", path);
            List<String> tenants = from.list(path + ".tenants", List.of(), String::strip);
            long bytes = from.bytes(path + ".host_bytes", 0);
            String sharedMemory = from.text(path + ".shared_memory", OFF);
            Optional<TrustDomainConfig> none = Optional.empty();
            from.getValid(none, () -> Optional.of(new TrustDomainConfig(path, name, tenants, bytes, sharedMemory)))
                    .ifPresent(domains::add);
        }
        return domains;
    }

    /// Adds all that is wrong with the domains together, or with their tenants.
    static void addProblems(List<TrustDomainConfig> domains, List<TenantConfig> tenants, List<String> problems) {
        Set<String> names = new HashSet<>();
        Set<String> members = new HashSet<>();
        Set<Path> folders = new HashSet<>();
        for (TrustDomainConfig domain : domains) {
            if (!names.add(domain.name)) {
                problems.add(domain.path + ".name is " + domain.name + ", which is already in use");
            }
            for (String tenant : domain.tenants) {
                if (!members.add(tenant)) {
                    problems.add(domain.path + ".tenants has " + tenant + ", which is in a domain already");
                } else {
                    domain.addTenantProblem(tenant, tenants, problems);
                }
            }
            Path folder = domain.sharedMemoryDirectory();
            if (folder != null && !folders.add(folder)) {
                problems.add(domain.path + ".shared_memory is " + domain.sharedMemory + ", which is already in use");
            }
        }
    }

    private void addTenantProblem(String name, List<TenantConfig> tenants, List<String> problems) {
        String tenantPath = path + ".tenants has " + name;
        Optional<TenantConfig> known =
                tenants.stream().filter(each -> each.name().equals(name)).findFirst();
        if (known.isEmpty()) {
            problems.add(tenantPath + "; there are " + TenantConfig.names(tenants));
        } else if (known.get().secretFile() == null) {
            problems.add(tenantPath + ", which has no secret_file; tenants of a domain must authenticate, so it takes"
                    + " a secret_file at that tenant");
        } else if (known.get().quotaBytes() > 0) {
            problems.add(tenantPath + ", which has a quota; blocks do not count against it, so it takes a tenant"
                    + " without one");
        }
    }

    /// Looks at it together with what else lies in memory that others map, and with where clients connect.
    ///
    /// @throws IllegalArgumentException when they do not go together
    void validate(TransportConfig transport) {
        if (!transport.isServing()) {
            throw new IllegalArgumentException(path + " is " + name + "; it takes transport.listen beside it");
        }
        if (sharedMemoryDirectory() != null && sharedMemory.equals(transport.sharedMemory())) {
            throw new IllegalArgumentException(
                    path + ".shared_memory is " + sharedMemory + ", which is already in use");
        }
    }
}
