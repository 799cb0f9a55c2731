package io.kvcache.server.config;

import io.kvcache.core.memory.SlabPool;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Tenants that may read each other, with memory of their own in which nothing of anybody else is: a trust domain. It
/// is for blocks and objects of other JVMs; what comes by other protocols is with everybody's.
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
        if (tenants.isEmpty()) {
            throw new IllegalArgumentException(path + ".tenants is not set; it takes names of tenants");
        }
        if (hostBytes < SlabPool.SLAB_BYTES) { // one size of block does with one slab
            throw new IllegalArgumentException(
                    path + ".host_bytes is " + hostBytes + "; it takes " + SlabPool.SLAB_BYTES + " (32 MiB) and up");
        }
        if (!TransportConfig.isDirectoryName(sharedMemory)) {
            throw new IllegalArgumentException(path + ".shared_memory is '" + sharedMemory
                    + "'; it takes off, or 1 to 100 letters, digits, dots, dashes and underscores");
        }
    }

    /// The folder for files that its tenants map, or null when there are to be none.
    public @Nullable Path sharedMemoryDirectory() {
        return sharedMemory.equals(OFF) ? null : TransportConfig.SHM_DIRECTORY.resolve(sharedMemory);
    }

    static List<TrustDomainConfig> read(Settings from) {
        List<TrustDomainConfig> domains = new ArrayList<>();
        int items = from.itemCount(LIST);
        for (int i = 0; i < items; i++) {
            String path = LIST + "." + i;
            String name = from.get(path + ".name", path, String::strip);
            List<String> tenants = from.list(path + ".tenants", List.of(), String::strip);
            long bytes = from.get(path + ".host_bytes", 0L, SettingParsers::parseBytes);
            String sharedMemory = from.get(path + ".shared_memory", OFF, String::strip);
            Optional<TrustDomainConfig> none = Optional.empty();
            from.getValid(none, () -> Optional.of(new TrustDomainConfig(path, name, tenants, bytes, sharedMemory)))
                    .ifPresent(domains::add);
        }
        return domains;
    }

    /// Looks at all of them together.
    ///
    /// @throws IllegalArgumentException when they do not go together, or not with the tenants
    static void validate(List<TrustDomainConfig> domains, List<TenantConfig> tenants) {
        List<String> names = new ArrayList<>();
        List<String> taken = new ArrayList<>();
        List<Path> folders = new ArrayList<>();
        for (TrustDomainConfig domain : domains) {
            requireUnique(names, domain.name, domain.path + ".name is " + domain.name + ", as another's is already");
            for (String tenant : domain.tenants) {
                requireUnique(taken, tenant, domain.path + ".tenants has " + tenant + ", which is in a domain already");
                domain.requireValidTenant(tenant, tenants);
            }
            Path folder = domain.sharedMemoryDirectory();
            if (folder != null) {
                requireUnique(
                        folders,
                        folder,
                        domain.path + ".shared_memory is " + domain.sharedMemory + ", as another's is already");
            }
        }
    }

    private static <T> void requireUnique(List<T> before, T next, String message) {
        if (before.contains(next)) {
            throw new IllegalArgumentException(message);
        }
        before.add(next);
    }

    private void requireValidTenant(String name, List<TenantConfig> tenants) {
        TenantConfig tenant = tenants.stream()
                .filter(each -> each.name().equals(name))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException(path + ".tenants has " + name + "; there are "
                        + String.join(
                                ", ", tenants.stream().map(TenantConfig::name).toList())));
        if (tenant.secretFile() == null) {
            throw new IllegalArgumentException(path + ".tenants has " + name + ", who has no secret_file; whoever is in"
                    + " a domain has to prove who he is, so it takes one at that tenant");
        }
        if (tenant.quotaBytes() > 0) {
            throw new IllegalArgumentException(path + ".tenants has " + name + ", who has a quota; blocks are not"
                    + " counted against it, so it takes a tenant without one");
        }
    }

    /// Looks at it together with what else lies in memory that others map, and with where clients connect.
    ///
    /// @throws IllegalArgumentException when they do not go together
    void validate(TransportConfig transport, LeaseConfig leases) {
        if (!transport.isServing()) {
            throw new IllegalArgumentException(path + " is " + name + "; it takes transport.listen beside it");
        }
        if (sharedMemoryDirectory() != null
                && (sharedMemory.equals(transport.sharedMemory()) || sharedMemory.equals(leases.sharedMemory()))) {
            throw new IllegalArgumentException(
                    path + ".shared_memory is " + sharedMemory + ", as another's is already");
        }
    }
}
