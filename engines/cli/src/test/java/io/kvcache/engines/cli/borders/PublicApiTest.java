package io.kvcache.engines.cli.borders;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.cluster.Membership;
import io.kvcache.core.KvCache;
import io.kvcache.engines.generator.GeneratorOptions;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.aeron.AeronEndpoint;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.ucx.UcxMemory;
import java.io.IOException;
import java.lang.module.ModuleFinder;
import java.lang.module.ModuleReader;
import java.lang.module.ModuleReference;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.GenericArrayType;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.lang.reflect.WildcardType;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// The types that an embedder imports. Every other public type is public only because modules share it, and may change.
///
/// No signature of these types shows another type of ours, but for the extension points, which are for those who bring
/// their own memory, tiers, clock or connection.
final class PublicApiTest {

    private static final Set<String> API = Set.of(
            // What every cache does
            "io.kvcache.core.KvCache",
            "io.kvcache.core.ObjectStore",
            "io.kvcache.core.CacheAdmin",
            "io.kvcache.core.LocalKvCache",
            "io.kvcache.core.ForwardingKvCache",
            "io.kvcache.core.SharedBlocks",
            "io.kvcache.core.ForwardingBlockTable",
            "io.kvcache.core.BlockTable",
            "io.kvcache.core.BlockWriter",
            "io.kvcache.core.ObjectView",
            "io.kvcache.core.ObjectWriter",
            "io.kvcache.core.ObjectCatalog",
            "io.kvcache.core.SegmentVisitor",
            "io.kvcache.core.DiskBlock",
            "io.kvcache.core.Match",
            "io.kvcache.core.PutOutcome",
            "io.kvcache.core.PutSummary",
            "io.kvcache.core.SealOutcome",
            "io.kvcache.core.Hint",
            "io.kvcache.core.ObjectHint",
            "io.kvcache.core.RequestLabel",
            "io.kvcache.core.RequestKind",
            "io.kvcache.core.CacheStats",
            "io.kvcache.core.NamespaceStats",
            "io.kvcache.core.AccessListener",
            "io.kvcache.core.ChainListener",
            // What blocks are named by
            "io.kvcache.core.identity.Namespace",
            "io.kvcache.core.identity.BlockChain",
            "io.kvcache.core.identity.BlockKey",
            "io.kvcache.core.identity.BlockShape",
            "io.kvcache.core.identity.Dtype",
            "io.kvcache.core.identity.AxisOrder",
            "io.kvcache.core.identity.ByteRange",
            "io.kvcache.core.identity.StridedRange",
            "io.kvcache.core.identity.Part",
            "io.kvcache.core.identity.PartGroup",
            "io.kvcache.core.identity.PartKind",
            "io.kvcache.core.identity.RopeOrigin",
            "io.kvcache.core.identity.ModelPreset",
            // What happened
            "io.kvcache.core.event.EventStream",
            "io.kvcache.core.event.EventBatch",
            "io.kvcache.core.event.CacheEvent",
            "io.kvcache.core.event.EventKind",
            "io.kvcache.core.event.TierKind",
            "io.kvcache.core.event.StoreSnapshot",
            // Caches
            "io.kvcache.tiers.TieredKvCache",
            "io.kvcache.tiers.TieredKvCacheBuilder",
            "io.kvcache.transport.client.RemoteKvCache",
            "io.kvcache.transport.client.RemoteKvCacheBuilder",
            "io.kvcache.transport.peer.ClusteredKvCache",
            "io.kvcache.transport.peer.NearKvCache");

    /// Shown by signatures above, and for those alone who ask for more: statistics of one part, and what can be
    /// brought.
    private static final Set<String> EXTENSION_POINTS = Set.of(
            "io.kvcache.core.spi.Clock",
            "io.kvcache.core.cost.PrefillCost",
            "io.kvcache.core.identity.PromptTree$TokenCounts",
            "io.kvcache.core.spi.HostMemorySource",
            "io.kvcache.core.policy.LruFallback$Report",
            "io.kvcache.core.policy.EvictionPolicyFactory",
            "io.kvcache.core.shm.SharedMemory",
            "io.kvcache.core.stats.DiskTierStats",
            "io.kvcache.core.stats.PrefetchStats",
            "io.kvcache.core.stats.ObjectResidency",
            "io.kvcache.core.stats.PrefixLevel",
            "io.kvcache.core.tier.AdmissionKind",
            "io.kvcache.core.tier.TierSource",
            "io.kvcache.tiers.DiskOptions",
            "io.kvcache.tiers.HintStats",
            "io.kvcache.tiers.options.MemoryOptions",
            "io.kvcache.tiers.options.StagingLimits",
            "io.kvcache.core.stats.TierTransferStats",
            "io.kvcache.transport.cluster.ClusterView",
            "io.kvcache.transport.cluster.DropMark",
            "io.kvcache.transport.peer.ClusteredKvCache$CopyStats",
            "io.kvcache.transport.peer.PeerConnector",
            "io.kvcache.transport.client.CommandReply",
            "io.kvcache.transport.client.RemoteStats",
            "io.kvcache.transport.client.SharedMemoryMode");

    /// Exported whole, for those who write a policy, a tier or a router, or serve a cache.
    private static final Set<String> OPEN_PACKAGES = Set.of(
            "io.kvcache.core.policy",
            "io.kvcache.core.shm",
            "io.kvcache.core.tier",
            "io.kvcache.engines.generator",
            "io.kvcache.tiers.metrics",
            "io.kvcache.transport.aeron",
            "io.kvcache.transport.cluster",
            "io.kvcache.transport.endpoint",
            "io.kvcache.transport.ucx");

    /// In an exported package, though no signature of the API shows them: what extension points take, and what lives
    /// beside its API type because it shares what is not public.
    private static final Set<String> BESIDE = Set.of(
            "io.kvcache.core.DeviceSupport",
            "io.kvcache.core.RangeQuery",
            "io.kvcache.core.identity.PromptTree",
            "io.kvcache.core.spi.HostMemory",
            "io.kvcache.tiers.options.OnIncompatible",
            "io.kvcache.transport.peer.PeeredKvCache");

    /// One type of each module with a descriptor.
    private static final List<Class<?>> MODULES = List.of(
            KvCache.class,
            TieredKvCache.class,
            RemoteKvCache.class,
            AeronEndpoint.class,
            UcxMemory.class,
            Membership.class,
            GeneratorOptions.class);

    /// The names of the API's types and of its extension points.
    static Set<String> types() {
        return union();
    }

    static Collection<String> api() {
        return new TreeSet<>(API);
    }

    @ParameterizedTest
    @MethodSource("api")
    void givenAnApiType_whenItsSignaturesAreRead_thenTheyShowApiTypesOnly(String name) throws ClassNotFoundException {
        Class<?> type = Class.forName(name);
        assertThat(Modifier.isPublic(type.getModifiers())).as("public").isTrue();
        assertThat(shown(type)).as("types shown by " + name).isSubsetOf(union());
    }

    /// An extension point that nothing shows any more has no place in the list.
    @Test
    void givenTheExtensionPoints_whenSignaturesAreRead_thenEachIsShown() throws ClassNotFoundException {
        Set<String> all = new TreeSet<>();
        for (String name : API) {
            all.addAll(shown(Class.forName(name)));
        }
        assertThat(all).containsAll(EXTENSION_POINTS);
    }

    @Test
    void givenTheModules_whenTheirExportsAreRead_thenTheyAreTheApi() throws Exception {
        Set<String> exported = new TreeSet<>();
        Set<String> packages = new TreeSet<>();
        for (Class<?> type : MODULES) {
            Path root = Path.of(
                    type.getProtectionDomain().getCodeSource().getLocation().toURI());
            ModuleReference module =
                    ModuleFinder.of(root).findAll().stream().findFirst().orElseThrow();
            assertThat(module.descriptor().isAutomatic()).as(module.toString()).isFalse();
            module.descriptor().exports().stream()
                    .filter(each -> !each.isQualified())
                    .forEach(each -> packages.add(each.source()));
            try (ModuleReader reader = module.open()) {
                exported.addAll(topLevelTypes(reader));
            }
        }
        exported.removeIf(name -> !packages.contains(packageOf(name)) || !isPublic(name));
        Set<String> wanted =
                union().stream().map(name -> name.replaceAll("\\$.*", "")).collect(Collectors.toSet());
        wanted.addAll(BESIDE);

        assertThat(packages).containsAll(OPEN_PACKAGES);
        exported.removeIf(name -> OPEN_PACKAGES.contains(packageOf(name)));
        wanted.removeIf(name -> OPEN_PACKAGES.contains(packageOf(name)));
        assertThat(exported).containsExactlyInAnyOrderElementsOf(wanted);
    }

    private static Set<String> topLevelTypes(ModuleReader reader) throws IOException {
        try (Stream<String> files = reader.list()) {
            return files.filter(file -> file.endsWith(".class") && !file.contains("$") && !file.contains("-"))
                    .map(file ->
                            file.substring(0, file.length() - ".class".length()).replace('/', '.'))
                    .collect(Collectors.toSet());
        }
    }

    private static String packageOf(String name) {
        return name.substring(0, name.lastIndexOf('.'));
    }

    private static boolean isPublic(String name) {
        try {
            return Modifier.isPublic(Class.forName(name, false, PublicApiTest.class.getClassLoader())
                    .getModifiers());
        } catch (ClassNotFoundException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static Set<String> union() {
        Set<String> all = new TreeSet<>(API);
        all.addAll(EXTENSION_POINTS);
        return all;
    }

    /// Our types in the public and protected signatures of a type and of the types nested in it.
    private static Set<String> shown(Class<?> type) {
        Set<String> found = new TreeSet<>();
        collect(type.getGenericSuperclass(), found);
        Stream.of(type.getGenericInterfaces()).forEach(each -> collect(each, found));
        for (Method method : type.getDeclaredMethods()) {
            if (isShown(method.getModifiers()) && !method.isSynthetic()) {
                collect(method.getGenericReturnType(), found);
                Stream.of(method.getGenericParameterTypes()).forEach(each -> collect(each, found));
                Stream.of(method.getGenericExceptionTypes()).forEach(each -> collect(each, found));
            }
        }
        for (Constructor<?> constructor : type.getDeclaredConstructors()) {
            if (isShown(constructor.getModifiers())) {
                Stream.of(constructor.getGenericParameterTypes()).forEach(each -> collect(each, found));
            }
        }
        for (Field field : type.getDeclaredFields()) {
            if (isShown(field.getModifiers())) {
                collect(field.getGenericType(), found);
            }
        }
        for (Class<?> nested : type.getDeclaredClasses()) {
            if (isShown(nested.getModifiers())) {
                found.addAll(shown(nested));
            }
        }
        return found;
    }

    private static boolean isShown(int modifiers) {
        return Modifier.isPublic(modifiers) || Modifier.isProtected(modifiers);
    }

    private static void collect(Type type, Set<String> found) {
        switch (type) {
            case null -> {}
            case Class<?> one when one.isArray() -> collect(one.componentType(), found);
            case Class<?> one -> {
                if (one.getName().startsWith("io.kvcache.")) {
                    found.add(api(one).getName());
                }
            }
            case ParameterizedType generic -> {
                collect(generic.getRawType(), found);
                Stream.of(generic.getActualTypeArguments()).forEach(each -> collect(each, found));
            }
            case WildcardType wildcard -> {
                Stream.of(wildcard.getUpperBounds()).forEach(each -> collect(each, found));
                Stream.of(wildcard.getLowerBounds()).forEach(each -> collect(each, found));
            }
            case GenericArrayType array -> collect(array.getGenericComponentType(), found);
            default -> {}
        }
    }

    /// A type that is nested in an API type belongs to it.
    private static Class<?> api(Class<?> type) {
        Class<?> outer = type.getDeclaringClass();
        return outer == null || EXTENSION_POINTS.contains(type.getName()) ? type : api(outer);
    }
}
