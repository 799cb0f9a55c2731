package io.kvcache.server.quota;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.Namespace;
import io.kvcache.server.quota.FairSharePool.NamespaceQuotas;
import org.junit.jupiter.api.Test;

final class FairSharePoolTest {

    private static int takeAll(FairSharePool fairSharePool, String tenant) {
        int taken = 0;
        while (fairSharePool.tryAcquire(tenant)) {
            taken++;
        }
        return taken;
    }

    @Test
    void givenSeveralTenants_whenEachTakesAllItMay_thenEachFindsSome() {
        FairSharePool fairSharePool = new FairSharePool(4096, 3);

        assertThat(takeAll(fairSharePool, "one")).isEqualTo(2048);
        assertThat(takeAll(fairSharePool, "two")).isEqualTo(1024);
        assertThat(takeAll(fairSharePool, "three")).isEqualTo(512);
        fairSharePool.release("one");
        assertThat(fairSharePool.usedBy("one")).isEqualTo(2047);
        assertThat(takeAll(fairSharePool, "two")).as("as one more is free").isEqualTo(0);
    }

    @Test
    void givenASoleTenant_whenItTakes_thenItMayHaveAll() {
        assertThat(takeAll(new FairSharePool(100, 1), "default")).isEqualTo(100);
    }

    @Test
    void givenOneTenantThatNamesAllItMay_whenAnotherNamesOne_thenItMay() {
        NamespaceQuotas shares = new NamespaceQuotas(2);
        Namespace first = Namespace.objects("0", "one");
        int taken = 0;
        while (shares.tryRegister(Namespace.objects(Integer.toString(taken), "one")) == null) {
            taken++;
        }

        assertThat(taken).isEqualTo(30_000);
        assertThat(shares.tryRegister(first)).as("it has that").isNull();
        assertThat(shares.tryRegister(Namespace.objects("another", "one")))
                .contains("tenant one has registered 30000 namespaces", "of 60000");
        assertThat(shares.tryRegister(Namespace.objects("0", "two"))).isNull();
    }
}
