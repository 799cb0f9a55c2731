package io.kvcache.server.block;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.block.TenantNamespaceRegistry.NamespaceOwnerResolver;
import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.quota.FairSharePool.NamespaceQuotas;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

final class TenantNamespaceRegistryTest {

    private static Namespace namespace(String tenant, int number) {
        return Namespace.of("m" + number, BlockShape.kv(1, 1, 8, 4, Dtype.BF16)).toBuilder()
                .tenant(tenant)
                .build();
    }

    @Test
    @Tag("slow")
    void givenATenantThatRegistersAllItMay_whenAnotherRegisters_thenItMay() {
        try (TestKeyspace test = TestKeyspace.small()) {
            TenantNamespaceRegistry namespaces = new TenantNamespaceRegistry(
                    test.cache(),
                    NamespaceOwnerResolver.CALLER,
                    BlockQuotaTrackers.withoutQuotas(test.cache()),
                    _ -> {},
                    new TenantNamespaceRegistry.RegistryLimits(2, new NamespaceQuotas(2)));
            for (int i = 0; i < TenantNamespaceRegistry.MAX_NAMESPACES / 2; i++) {
                assertThat(namespaces.register(namespace("one", i)).isNew()).isTrue();
            }
            Namespace more = namespace("one", TenantNamespaceRegistry.MAX_NAMESPACES);

            assertThatThrownBy(() -> namespaces.register(more))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("tenant one has 2048 namespaces; of 4096");
            assertThat(namespaces.register(namespace("two", 0)).isNew()).isTrue();
            assertThat(namespaces.register(namespace("one", 0)).isNew()).isFalse();

            assertThat(namespaces.delete("one", "m0")).isZero();
            assertThat(namespaces.delete("one", "m1")).isZero();
            assertThat(namespaces.register(more).isNew()).isTrue();
        }
    }
}
