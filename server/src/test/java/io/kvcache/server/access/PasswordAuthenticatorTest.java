package io.kvcache.server.access;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.server.access.PasswordAuthenticator.AuthResult;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.keyspace.ManualClock;
import io.kvcache.server.log.LogCapture;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class PasswordAuthenticatorTest {

    private static final SocketAddress HERE = new InetSocketAddress(InetAddress.getLoopbackAddress(), 1);
    private static final SocketAddress THERE = new InetSocketAddress(InetAddress.ofLiteral("10.0.0.1"), 1);

    private final ManualClock time = new ManualClock();

    @TempDir
    private Path directory = Path.of("");

    private static String hash(String password) {
        return PasswordHash.of(password, 1000, new SecureRandom()).toString();
    }

    private static TenantConfig tenant(String name, @Nullable String hash, @Nullable Path file) {
        return new TenantConfig("tenants.0", name, name, hash, file == null ? null : file.toString(), 0);
    }

    /// A file of passwords that its owner alone may read.
    private Path secret(String text) throws IOException {
        Path file = Files.writeString(directory.resolve("passwords"), text);
        return Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
    }

    private PasswordAuthenticator logins(TenantConfig... tenants) throws IOException {
        return PasswordAuthenticator.withExecutor(Runnable::run, List.of(tenants), time);
    }

    private static AuthResult ask(
            PasswordAuthenticator passwordAuthenticator, SocketAddress from, String user, String password) {
        List<AuthResult> verdicts = new ArrayList<>();
        passwordAuthenticator.authenticate(from, user, password, verdicts::add);
        assertThat(verdicts).hasSize(1);
        return verdicts.getFirst();
    }

    @Test
    void givenAHash_whenPasswordsAreTried_thenOnlyTheRightOneIsIn() throws IOException {
        PasswordAuthenticator passwordAuthenticator =
                logins(tenant("blue", hash("öffne dich"), null), tenant("green", hash("other"), null));

        assertThat(ask(passwordAuthenticator, HERE, "blue", "öffne dich").tenant())
                .isEqualTo("blue");
        assertThat(ask(passwordAuthenticator, HERE, "blue", "öffne dich").tenant())
                .isEqualTo("blue");
        assertThat(ask(passwordAuthenticator, HERE, "blue", "other")).isEqualTo(AuthResult.DENIED);
        assertThat(ask(passwordAuthenticator, HERE, "green", "öffne dich")).isEqualTo(AuthResult.DENIED);
        assertThat(ask(passwordAuthenticator, HERE, "blue\0", "öffne dich")).isEqualTo(AuthResult.DENIED);
        assertThat(ask(passwordAuthenticator, HERE, "red", "")).isEqualTo(AuthResult.DENIED);
        assertThat(passwordAuthenticator.deniedCount()).isEqualTo(4);
    }

    @Test
    void givenAFile_whenItChanges_thenNewPasswordsCountAfterReloadAndOldOnesDoNot() throws IOException {
        Path file = secret("one\n" + hash("two") + "\n");
        PasswordAuthenticator passwordAuthenticator = logins(tenant("blue", null, file));
        assertThat(ask(passwordAuthenticator, HERE, "blue", "one").tenant()).isEqualTo("blue");
        assertThat(ask(passwordAuthenticator, HERE, "blue", "two").tenant()).isEqualTo("blue");

        Files.writeString(file, "three\n");
        assertThat(ask(passwordAuthenticator, HERE, "blue", "two").tenant()).isEqualTo("blue");
        passwordAuthenticator.reload();

        assertThat(ask(passwordAuthenticator, HERE, "blue", "three").tenant()).isEqualTo("blue");
        assertThat(ask(passwordAuthenticator, HERE, "blue", "one")).isEqualTo(AuthResult.DENIED);
        assertThat(ask(passwordAuthenticator, HERE, "blue", "two")).isEqualTo(AuthResult.DENIED);
    }

    @Test
    void givenAFileThatIsWrong_whenReloaded_thenTheOldPasswordsStayAndNothingSecretIsSaid() throws IOException {
        Path file = secret("one\n");
        PasswordAuthenticator passwordAuthenticator = logins(tenant("blue", null, file));

        Files.writeString(file, "pbkdf2-sha256$1$sesame\n");
        assertThatThrownBy(passwordAuthenticator::reload)
                .isInstanceOf(IOException.class)
                .hasMessageContaining("tenants.0.password_file " + file)
                .hasMessageNotContaining("sesame");
        Files.writeString(file, "\n");
        assertThatThrownBy(passwordAuthenticator::reload).hasMessageContaining("has no password");
        Files.delete(file);
        assertThatThrownBy(passwordAuthenticator::reload).hasMessageContaining("cannot be read");

        assertThat(ask(passwordAuthenticator, HERE, "blue", "one").tenant()).isEqualTo("blue");
    }

    @Test
    void givenAFileThatOthersMayRead_whenOpenedOrReloaded_thenItIsRefusedAsASecretFileIs() throws IOException {
        Path file = secret("one\n");
        PasswordAuthenticator passwordAuthenticator = logins(tenant("blue", null, file));

        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r--r--"));

        assertThatThrownBy(() -> logins(tenant("blue", null, file)))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("tenants.0.password_file " + file + " has mode rw-r--r--")
                .hasMessageContaining("chmod 600 " + file);
        assertThatThrownBy(passwordAuthenticator::reload).hasMessageContaining("has mode rw-r--r--");
        assertThat(ask(passwordAuthenticator, HERE, "blue", "one").tenant()).isEqualTo("blue");
    }

    @Test
    void givenManyWrongPasswords_whenMoreCome_thenTheyWaitAMinuteAndOnlyFromThere() throws IOException {
        PasswordAuthenticator passwordAuthenticator =
                logins(tenant("blue", hash("right"), null), tenant("green", hash("known"), null));
        assertThat(ask(passwordAuthenticator, HERE, "green", "known").tenant()).isEqualTo("green");
        for (int i = 0; i < 10; i++) {
            assertThat(ask(passwordAuthenticator, HERE, "blue", "wrong" + i)).isEqualTo(AuthResult.DENIED);
        }

        assertThat(ask(passwordAuthenticator, HERE, "blue", "right")).isEqualTo(AuthResult.THROTTLED);
        assertThat(ask(passwordAuthenticator, HERE, "green", "known").tenant())
                .as("another user from there")
                .isEqualTo("green");
        assertThat(ask(passwordAuthenticator, THERE, "blue", "wrong")).isEqualTo(AuthResult.DENIED);
        time.advance(Duration.ofSeconds(61));
        assertThat(ask(passwordAuthenticator, HERE, "blue", "right").tenant()).isEqualTo("blue");
        assertThat(passwordAuthenticator.throttledCount()).isEqualTo(1);
    }

    @Test
    void givenAPasswordThatIsKnown_whenItIsGuessed_thenTenTriesAreLookedAtEachMinute() throws IOException {
        PasswordAuthenticator passwordAuthenticator = logins(tenant("blue", hash("000777"), null));
        assertThat(ask(passwordAuthenticator, THERE, "blue", "000777").tenant()).isEqualTo("blue");

        List<AuthResult> verdicts = new ArrayList<>();
        for (int guess = 0; guess < 1000; guess++) {
            verdicts.add(ask(passwordAuthenticator, HERE, "blue", String.format(Locale.ROOT, "%06d", guess)));
        }

        assertThat(verdicts.subList(0, 10)).containsOnly(AuthResult.DENIED);
        assertThat(verdicts.subList(10, 1000)).containsOnly(AuthResult.THROTTLED);
        time.advance(Duration.ofSeconds(61));
        assertThat(ask(passwordAuthenticator, HERE, "blue", "000777").tenant()).isEqualTo("blue");
    }

    @Test
    void givenGuessesThatComeAtOnce_whenHashedOneByOne_thenTenAreLookedAt() throws IOException {
        Deque<Runnable> hashes = new ArrayDeque<>();
        PasswordAuthenticator passwordAuthenticator =
                PasswordAuthenticator.withExecutor(hashes::add, List.of(tenant("blue", hash("right"), null)), time);
        List<AuthResult> verdicts = new ArrayList<>();
        for (int guess = 0; guess < 100; guess++) {
            passwordAuthenticator.authenticate(HERE, "blue", "wrong" + guess, verdicts::add);
            assertThat(hashes).as("one hash of an address at a time").hasSize(1);
        }
        passwordAuthenticator.authenticate(HERE, "blue", "right", verdicts::add);

        while (!hashes.isEmpty()) {
            hashes.remove().run();
        }

        assertThat(verdicts.subList(0, 10)).containsOnly(AuthResult.DENIED);
        assertThat(verdicts.subList(10, 101)).hasSize(91).containsOnly(AuthResult.THROTTLED);
    }

    @Test
    void givenAnAddressThatFloods_whenAnotherLogsIn_thenItWaitsForOneHashAlone() throws IOException {
        Deque<Runnable> hashes = new ArrayDeque<>();
        PasswordAuthenticator passwordAuthenticator =
                PasswordAuthenticator.withExecutor(hashes::add, List.of(tenant("blue", hash("right"), null)), time);
        for (int guess = 0; guess < 1000; guess++) {
            passwordAuthenticator.authenticate(HERE, "user" + guess, "wrong", authResult -> {});
        }
        List<AuthResult> verdicts = new ArrayList<>();
        passwordAuthenticator.authenticate(THERE, "blue", "right", verdicts::add);

        hashes.remove().run();
        hashes.remove().run();

        assertThat(verdicts).extracting(AuthResult::tenant).containsExactly("blue");
    }

    @Test
    void givenAPoolThatConnectsAtOnce_whenItsPasswordIsRight_thenAllAreInAfterOneHash() throws IOException {
        Deque<Runnable> hashes = new ArrayDeque<>();
        PasswordAuthenticator passwordAuthenticator =
                PasswordAuthenticator.withExecutor(hashes::add, List.of(tenant("blue", hash("right"), null)), time);
        List<AuthResult> verdicts = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            passwordAuthenticator.authenticate(HERE, "blue", "right", verdicts::add);
        }

        hashes.remove().run();

        assertThat(hashes).isEmpty();
        assertThat(verdicts)
                .hasSize(200)
                .allSatisfy(authResult -> assertThat(authResult.tenant()).isEqualTo("blue"));
    }

    @Test
    void givenManyUsersGuessedAt_whenAHundredWereWrong_thenNothingFromThereIsLookedAt() throws IOException {
        PasswordAuthenticator passwordAuthenticator = logins(tenant("blue", hash("right"), null));
        for (int user = 0; user < 100; user++) {
            assertThat(ask(passwordAuthenticator, HERE, "user" + user, "wrong")).isEqualTo(AuthResult.DENIED);
        }

        assertThat(ask(passwordAuthenticator, HERE, "blue", "right")).isEqualTo(AuthResult.THROTTLED);
        assertThat(ask(passwordAuthenticator, THERE, "blue", "right").tenant()).isEqualTo("blue");
    }

    @Test
    void givenAddressesOfOneHost_whenTheyGuess_thenTheyCountAsOne() throws IOException {
        PasswordAuthenticator passwordAuthenticator = logins(tenant("blue", hash("right"), null));
        for (int host = 1; host <= 10; host++) {
            SocketAddress six = new InetSocketAddress(InetAddress.ofLiteral("2001:db8:0:1::" + host), 1);
            assertThat(ask(passwordAuthenticator, six, "blue", "wrong")).isEqualTo(AuthResult.DENIED);
        }

        SocketAddress same = new InetSocketAddress(InetAddress.ofLiteral("2001:db8:0:1:ffff::1"), 1);
        SocketAddress other = new InetSocketAddress(InetAddress.ofLiteral("2001:db8:0:2::1"), 1);
        assertThat(ask(passwordAuthenticator, same, "blue", "right")).isEqualTo(AuthResult.THROTTLED);
        assertThat(ask(passwordAuthenticator, other, "blue", "right").tenant()).isEqualTo("blue");
    }

    @Test
    void givenTooManyWaiting_whenAnotherComes_thenItIsToldToComeLater() throws IOException {
        PasswordAuthenticator passwordAuthenticator = PasswordAuthenticator.withExecutor(
                task -> {
                    throw new RejectedExecutionException();
                },
                List.of(tenant("blue", hash("right"), null)),
                time);

        assertThat(ask(passwordAuthenticator, HERE, "blue", "right")).isEqualTo(AuthResult.THROTTLED);
    }

    @Test
    void givenAListenerOfOneTenant_whenAnotherOneComes_thenItIsRefused() throws IOException {
        List<TenantConfig> tenants = List.of(tenant("blue", hash("b"), null), tenant("green", hash("g"), null));
        PasswordAuthenticator passwordAuthenticator = PasswordAuthenticator.withExecutor(Runnable::run, tenants, time);
        ListenerAuth listenerAuth = new ListenerAuth(
                new ListenerAuthConfig("blue", true, false, List.of(), List.of()), tenants, passwordAuthenticator);

        List<AuthResult> verdicts = new ArrayList<>();
        listenerAuth.authenticate(HERE, "green", "g", verdicts::add);
        listenerAuth.authenticate(HERE, listenerAuth.defaultUser(), "b", verdicts::add);

        assertThat(listenerAuth.anonymousTenant()).isNull();
        assertThat(verdicts).extracting(AuthResult::tenant).containsExactly(null, "blue");
    }

    @Test
    void givenAHash_whenWrittenAndRead_thenItIsTheSameAndMistakesAreNotRepeated() {
        String text = hash("secret");
        assertThat(PasswordHash.parse(text).matches("secret")).isTrue();
        assertThat(PasswordHash.parse(text).toString()).isEqualTo(text).doesNotContain("secret");
        assertThat(hash("secret")).isNotEqualTo(text);
        for (String wrong : List.of("secret", "pbkdf2-sha256$1$AAAA$AAAA", text.replace("$1000$", "$10$"))) {
            assertThatThrownBy(() -> PasswordHash.parse(wrong))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageNotContaining(wrong);
        }
    }

    @Test
    void givenRefusedLogins_whenLogged_thenUserAndAddressAreNamedAndNoPassword() throws IOException {
        TenantConfig blue = tenant("blue", hash("of blue"), null);
        try (PasswordAuthenticator passwordAuthenticator = logins(blue);
                LogCapture logCapture = new LogCapture(PasswordAuthenticator.class.getName())) {
            ListenerAuthConfig asking = new ListenerAuthConfig(null, true, false, List.of(), List.of());
            ListenerAuth listenerAuth = new ListenerAuth(asking, List.of(blue), passwordAuthenticator);
            listenerAuth.authenticate(THERE, "blue", "of blue", _ -> {});
            listenerAuth.authenticate(THERE, "blue", "guess", _ -> {});
            for (int i = 0; i < 30; i++) {
                listenerAuth.authenticate(THERE, "x".repeat(1000), "guess", _ -> {});
            }

            assertThat(logCapture.messages()).hasSize(20);
            assertThat(logCapture.messages().getFirst())
                    .isEqualTo("Log-in refused: wrong user or password, user 'blue', from 10.0.0.1:1");
            assertThat(logCapture.messages().getLast())
                    .isEqualTo("Log-in refused: not checked, after too many wrong ones, user '" + "x".repeat(64)
                            + "...', from 10.0.0.1:1");

            time.advance(Duration.ofMinutes(1));
            listenerAuth.authenticate(HERE, "green", "guess", _ -> {});

            assertThat(logCapture.messages().getLast())
                    .isEqualTo("Log-in refused: wrong user or password, user 'green', from 127.0.0.1:1"
                            + " (11 more before were not logged)");
            assertThat(String.join("", logCapture.messages())).doesNotContain("guess");
        }
    }
}
