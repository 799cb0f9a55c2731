package io.kvcache.server.http;

import io.kvcache.server.access.ListenerAuth;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Labels;
import io.kvcache.server.keyspace.Reach;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/// What is served at one listener.
///
/// @param tenants the objects that each tenant may ask for, by its name; empty for none at all
/// @param labels how requests name a tenant by its salt
/// @param pages by path
/// @param areas asked in turn for what is neither an object nor a page
/// @param hosts names by which clients may call a server that does not ask who they are, beside numbers and
/// localhost; `*` for any
public record HttpSite(
        ListenerAuth door,
        Map<String, Reach> tenants,
        Supplier<Labels> labels,
        Map<String, Page> pages,
        List<Area> areas,
        Set<String> hosts) {

    /// Any name.
    public static final String ANY_HOST = "*";

    public HttpSite {
        tenants = Map.copyOf(tenants);
        pages = Map.copyOf(pages);
        areas = List.copyOf(areas);
        hosts = Set.copyOf(hosts);
    }

    /// One where no key and no request names another tenant.
    public HttpSite(
            ListenerAuth door,
            Map<String, Keyspace> tenants,
            Map<String, Page> pages,
            List<Area> areas,
            Set<String> hosts) {
        this(
                door,
                tenants.entrySet().stream()
                        .collect(Collectors.toMap(Map.Entry::getKey, each -> Reach.of(each.getValue()))),
                () -> Labels.NONE,
                pages,
                areas,
                hosts);
    }
}
