package io.kvcache.engines.cli;

import io.kvcache.core.KvCache;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.engines.chat.ChatOptions;
import io.kvcache.engines.chat.ChatServer;
import io.kvcache.engines.generator.GeneratorOptions;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.engines.generator.TextModel;
import io.kvcache.server.cli.ByteSizeText;
import io.kvcache.server.cli.CommandLineBuilder.LongRunningCommand;
import io.kvcache.tiers.DiskOptions;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import io.kvcache.tiers.directory.DiskDirectoryException;
import io.kvcache.tiers.metrics.KvCacheMetrics;
import io.kvcache.transport.client.RemoteKvCache;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// `kvcache chat-server`: OpenAI's protocol over an engine with a store before its prefill, until it is
/// told to stop.
///
/// SIGTERM and Ctrl-C end it with 0, after what is in memory is on disk, if there is one.
@Command(
        name = "chat-server",
        description = "Serve a model to OpenAI's clients by Jlama or llama.cpp, with a store that says what it saved.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class ChatServerCommand implements Callable<Integer>, LongRunningCommand {

    private static final int MAX_PORT = 65_535;
    private static final long FLUSH_SECONDS = 30;

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Mixin
    private final EngineOptions engineOptions = new EngineOptions();

    @Option(
            names = "--address",
            paramLabel = "ADDRESS",
            defaultValue = "127.0.0.1",
            description = "Address to listen at.")
    private String address = "";

    @Option(names = "--port", paramLabel = "PORT", defaultValue = "8000", description = "Default: ${DEFAULT-VALUE}.")
    private int port;

    @Option(
            names = "--host-bytes",
            paramLabel = "SIZE",
            defaultValue = "1GiB",
            description = "Memory for blocks. Default: ${DEFAULT-VALUE}.")
    private String hostBytes = "";

    @Option(
            names = "--disk",
            paramLabel = "DIR:SIZE",
            description = "A disk below it, which has the blocks after a restart. Default: none.")
    private @Nullable String disk;

    @Option(
            names = "--cache",
            paramLabel = "HOST:PORT",
            description = "A server that has the blocks, in place of memory and disk of this process:"
                    + " kvcache serve --transport HOST:PORT.")
    private @Nullable String cache;

    @Option(
            names = "--block-tokens",
            paramLabel = "N",
            defaultValue = "16",
            description = "Tokens in a block. Default: ${DEFAULT-VALUE}.")
    private int blockTokens;

    @Option(
            names = "--verify",
            paramLabel = "SHARE",
            defaultValue = "0",
            description = "Share of the hits that are computed all the same and compared, 0 to 1. Default: none.")
    private double verifiedShare;

    @Override
    public Integer call() throws IOException, InterruptedException {
        engineOptions.kind();
        GeneratorOptions options = options();
        KvCache store = openStore();
        TextEngine served = engineOptions.open();
        PrefixCachedGenerator<TextModel> generator = generator(served.model(), store, options);
        ChatServer server = ChatServer.start(
                generator,
                ChatOptions.of(
                        new InetSocketAddress(address, port), served.model().name()),
                List.of(new KvCacheMetrics(store, "chat")));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(server, generator, served, store)));
        printLine("KVCache answers at http://" + server.address().getAddress().getHostAddress() + ":"
                + server.address().getPort() + "/v1 with "
                + served.model().name() + " by " + served.build());
        new CountDownLatch(1).await();
        return 0;
    }

    /// The engine, and the store's memory, decide too which blocks there can be.
    private PrefixCachedGenerator<TextModel> generator(TextModel served, KvCache store, GeneratorOptions options) {
        try {
            return new PrefixCachedGenerator<>(served, store, options);
        } catch (IllegalArgumentException wrong) {
            throw parameterError(wrong);
        }
    }

    private GeneratorOptions options() {
        try {
            if (port < 0 || port > MAX_PORT) {
                throw new IllegalArgumentException("--port is " + port + ", must be 0 to " + MAX_PORT);
            }
            if (cache != null && disk != null) {
                throw new IllegalArgumentException("--cache and --disk: the blocks are there or here");
            }
            return GeneratorOptions.DEFAULTS.withBlockTokens(blockTokens).withVerifiedShare(verifiedShare);
        } catch (IllegalArgumentException wrong) {
            throw parameterError(wrong);
        }
    }

    private KvCache openStore() throws IOException {
        try {
            if (cache != null) {
                return RemoteKvCache.connect(cache);
            }
            TieredKvCacheBuilder builder = TieredKvCache.builder()
                    .hostBytes(ByteSizeText.parse(hostBytes).bytes());
            if (disk != null) {
                // A prompt that was asked once has taken its seconds: it is worth its write.
                builder.disk(disk(disk)).admission(AdmissionKind.ALWAYS);
            }
            return builder.build();
        } catch (IllegalArgumentException wrong) {
            throw parameterError(wrong);
        } catch (DiskDirectoryException | UncheckedIOException refused) {
            throw new IOException(refused.getMessage(), refused);
        }
    }

    private static DiskOptions disk(String given) {
        int colon = given.lastIndexOf(':');
        if (colon < 1) {
            throw new IllegalArgumentException("--disk is '" + given + "', must be: DIR:SIZE");
        }
        return DiskOptions.of(
                Path.of(given.substring(0, colon)),
                ByteSizeText.parse(given.substring(colon + 1)).bytes());
    }

    private ParameterException parameterError(IllegalArgumentException wrong) {
        return new ParameterException(spec.commandLine(), "kvcache chat-server: " + wrong.getMessage(), wrong);
    }

    private void stop(ChatServer server, PrefixCachedGenerator<TextModel> generator, TextEngine served, KvCache store) {
        server.close();
        generator.close();
        if (disk != null && !store.flush(Duration.ofSeconds(FLUSH_SECONDS))) {
            printLine("KVCache: not all blocks got to disk in time");
        }
        store.close();
        try {
            served.close();
        } catch (IOException left) {
            printLine("KVCache: " + left.getMessage());
        }
        printLine("KVCache stopped");
        Runtime.getRuntime().halt(0);
    }

    private void printLine(String line) {
        PrintWriter out = spec.commandLine().getOut();
        out.println(line);
        out.flush();
    }
}
