package io.kvcache.server.quota;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.Namespace;
import org.junit.jupiter.api.Test;

final class SharesTest {

    private static int takeAll(Shares shares, String tenant) {
        int taken = 0;
        while (shares.take(tenant)) {
            taken++;
        }
        return taken;
    }

    @Test
    void givenSeveralTenants_whenEachTakesAllItMay_thenEachFindsSome() {
        Shares shares = new Shares(4096, 3);

        assertThat(takeAll(shares, "one")).isEqualTo(2048);
        assertThat(takeAll(shares, "two")).isEqualTo(1024);
        assertThat(takeAll(shares, "three")).isEqualTo(512);
        shares.give("one");
        assertThat(shares.taken("one")).isEqualTo(2047);
        assertThat(takeAll(shares, "two")).as("as one more is free").isEqualTo(0);
    }

    @Test
    void givenASoleTenant_whenItTakes_thenItMayHaveAll() {
        assertThat(takeAll(new Shares(100, 1), "default")).isEqualTo(100);
    }

    @Test
    void givenOneTenantThatNamesAllItMay_whenAnotherNamesOne_thenItMay() {
        NamespaceShares shares = new NamespaceShares(2);
        Namespace first = Namespace.objects("0", "one");
        int taken = 0;
        while (shares.refusal(Namespace.objects(Integer.toString(taken), "one")) == null) {
            taken++;
        }

        assertThat(taken).isEqualTo(30_000);
        assertThat(shares.refusal(first)).as("it has that").isNull();
        assertThat(shares.refusal(Namespace.objects("another", "one")))
                .contains("tenant one has registered 30000 namespaces", "of 60000");
        assertThat(shares.refusal(Namespace.objects("0", "two"))).isNull();
    }
}
