package io.kvcache.server.cli;

import io.kvcache.server.client.ClientConfig;
import io.kvcache.server.client.ClientConfig.ClientCredentials;
import io.kvcache.server.client.HttpApiClient;
import io.kvcache.server.client.RespClient;
import io.kvcache.transport.net.ClientTlsContexts;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.stream.Stream;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// The server that a command asks, and the user that it authenticates as.
final class ConnectionOptions {

    /// The variable that may hold the password, as any user of the machine can read arguments.
    private static final String PASSWORD_VARIABLE = "KVCACHE_PASSWORD";

    private static final int MAX_PORT = 65_535;

    private static final String DEFAULT_HOST = "127.0.0.1";
    private static final int DEFAULT_PORT = 7379;

    @Option(names = "--host", paramLabel = "HOST", description = "The server's host. Default: ${DEFAULT-VALUE}.")
    private String host = DEFAULT_HOST;

    @Option(names = "--port", paramLabel = "PORT", description = "The server's port. Default: ${DEFAULT-VALUE}.")
    private int port = DEFAULT_PORT;

    @Option(
            names = "--user",
            paramLabel = "NAME",
            description = "User to authenticate as. Default: the listener's usual user.")
    private @Nullable String user;

    @Option(
            names = "--password-file",
            paramLabel = "FILE",
            description = "Its first line is the password. Default: $" + PASSWORD_VARIABLE + ", or none.")
    private @Nullable Path passwordFile;

    @Option(names = "--tls", description = "Connect through TLS.")
    private boolean tls;

    @Option(
            names = "--ca",
            paramLabel = "FILE",
            description = "PEM with the certificates to trust; implies --tls. Default: the JDK's.")
    private @Nullable Path authorities;

    @Spec(Spec.Target.MIXEE)
    private CommandSpec command = CommandSpec.create();

    /// Prints a line: to standard output if the command succeeded, else to standard error.
    ///
    /// @return the exit code
    int print(boolean succeeded, String text) {
        PrintWriter to = succeeded
                ? command.commandLine().getOut()
                : command.commandLine().getErr();
        to.println(text);
        to.flush();
        return succeeded ? 0 : 1;
    }

    HttpApiClient httpClient() throws IOException {
        return new HttpApiClient(clientConfig());
    }

    /// The same, for requests that the server takes some time for.
    HttpApiClient httpClient(Duration more) throws IOException {
        return new HttpApiClient(clientConfig(), ClientConfig.ANSWER_TIMEOUT.plus(more));
    }

    /// Host and port, as they stand in an address.
    String hostAndPort() {
        return ClientConfig.open(host, port).hostAndPort();
    }

    /// The options that name this server, each behind a space, for a command that the user may type next.
    String repeated() {
        StringBuilder options = new StringBuilder();
        if (!host.equals(DEFAULT_HOST)) {
            options.append(" --host ").append(quoted(host));
        }
        if (port != DEFAULT_PORT) {
            options.append(" --port ").append(port);
        }
        if (user != null) {
            options.append(" --user ").append(quoted(user));
        }
        if (passwordFile != null) {
            options.append(" --password-file ").append(quoted(passwordFile.toString()));
        }
        if (tls) {
            options.append(" --tls");
        }
        if (authorities != null) {
            options.append(" --ca ").append(quoted(authorities.toString()));
        }
        return options.toString();
    }

    /// As a shell takes it for one word.
    private static String quoted(String text) {
        return text.matches("[\\w./:@%+=,-]+") ? text : "'" + text.replace("'", "'\\''") + "'";
    }

    /// The mistake in the command's arguments, whose message leads to the command's own help.
    ParameterException usageError(String message) {
        return new ParameterException(command.commandLine(), message);
    }

    RespClient respClient() throws IOException {
        return new RespClient(clientConfig());
    }

    private ClientConfig clientConfig() throws IOException {
        if (port < 1 || port > MAX_PORT) {
            throw usageError("--port is " + port + "; it takes 1 to " + MAX_PORT);
        }
        Path file = authorities;
        SSLContext trust = file != null ? ClientTlsContexts.of(file) : tls ? ClientTlsContexts.systemDefault() : null;
        return new ClientConfig(host, port, clientCredentials(), trust);
    }

    private @Nullable ClientCredentials clientCredentials() throws IOException {
        String password = passwordFile == null ? System.getenv(PASSWORD_VARIABLE) : firstLine(passwordFile);
        if (password == null && user != null) {
            throw new IOException(
                    "--user " + user + " without a password: give --password-file or set " + PASSWORD_VARIABLE);
        }
        return password == null ? null : new ClientCredentials(user, password);
    }

    private static String firstLine(Path file) throws IOException {
        try (Stream<String> lines = Files.lines(file)) {
            return lines.findFirst()
                    .orElseThrow(() -> new IOException(file + " is empty; its first line is to be the password"));
        } catch (NoSuchFileException none) {
            throw new IOException("there is no password file " + file, none);
        }
    }
}
