package io.kvcache.planner.trace;

import io.kvcache.planner.trace.AgentTraceGenerator.AgentWorkload;
import io.kvcache.planner.trace.TraceGenerator.Workload;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;

/// The source of a trace, as `--trace` names it: a published one by name, a generated one, or a file.
public sealed interface TraceSource {

    /// The forms of a trace, for messages.
    String FORMS =
            "a file, conversation, synthetic, generated:SEED, popular:SEED, hostile:SEED, agents:SEED or mixed:SEED"
                    + " (SEED is 1 where none is given; NAME=N, each after a colon, may follow that of agents and mixed: "
                    + AgentWorkload.NAMES + ")";

    /// Requests in a generated trace: enough to turn a cache of a few thousand blocks over many times.
    int GENERATED_REQUESTS = 10_000;

    /// Reads or generates the trace.
    Trace load(TraceReader reader) throws IOException;

    /// Name of the trace that it loads.
    String name();

    /// A trace that is made up from a seed.
    sealed interface Seeded extends TraceSource {

        /// What it is made up from.
        long seed();

        /// The same kind of trace, made up from another seed.
        Seeded withSeed(long other);
    }

    /// Understands what follows `--trace`.
    ///
    /// @throws IllegalArgumentException when a seed is not a number, or it is neither a name nor a file
    static TraceSource parse(String text) {
        if (Set.of("conversation", "synthetic").contains(text)) {
            return new Published(text);
        }
        int colon = text.indexOf(':');
        String kind = colon < 0 ? text : text.substring(0, colon);
        return switch (kind) {
            case "generated", "popular", "hostile" -> new Synthetic(kind, seed(text));
            case "agents" -> Agents.parse(text, false);
            case "mixed" -> Agents.parse(text, true);
            default -> file(text);
        };
    }

    private static File file(String text) {
        Path path = Path.of(text);
        if (path.getParent() == null && Files.notExists(path)) { // perhaps a misspelt name
            throw new IllegalArgumentException("no such file: " + path + "; a trace is " + FORMS);
        }
        return new File(path);
    }

    private static long seed(String text) {
        int colon = text.indexOf(':');
        if (colon < 0) {
            return 1;
        }
        try {
            return Long.parseLong(text.substring(colon + 1));
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("'" + text + "' is not a trace: must be " + FORMS, e);
        }
    }

    /// One of Mooncake's traces, looked for where [TraceFinder] looks.
    record Published(String name) implements TraceSource {
        @Override
        public Trace load(TraceReader reader) throws IOException {
            Path file = new TraceFinder()
                    .find(name)
                    .orElseThrow(() -> new FileNotFoundException(String.format(
                            Locale.ROOT,
                            "the %1$s trace is not here: get %1$s_trace.jsonl from github.com/kvcache-ai/Mooncake,"
                                    + " folder FAST25-release/traces, and name its folder in %2$s;"
                                    + " or take the trace generated:1",
                            name,
                            TraceFinder.FOLDER_VARIABLE)));
            return reader.read(file);
        }
    }

    /// Made up from a seed, in a way that has a name: `generated` of all kinds of traffic, `popular` of prompts that
    /// are wanted very often, `hostile` to mislead policies that learn.
    record Synthetic(String kind, long seed) implements Seeded {
        @Override
        public String name() {
            return kind + ":" + seed;
        }

        @Override
        public Seeded withSeed(long other) {
            return new Synthetic(kind, other);
        }

        @Override
        public Trace load(TraceReader reader) {
            return switch (kind) {
                case "popular" -> new ZipfTrace(seed).generate(name());
                case "hostile" -> new AdversarialTrace(seed).generate(name());
                default -> new TraceGenerator(Workload.mixed(), seed).generate(name(), GENERATED_REQUESTS);
            };
        }
    }

    /// Made up from a seed: agents with tools, alone or with chats on one clock.
    record Agents(String name, AgentWorkload workload, boolean withChats, long seed) implements Seeded {

        static Agents parse(String text, boolean withChats) {
            List<String> parts = List.of(text.split(":", -1));
            boolean seeded = parts.size() > 1 && !parts.get(1).contains("=");
            return new Agents(
                    text,
                    AgentWorkload.parse(parts.subList(seeded ? 2 : 1, parts.size())),
                    withChats,
                    seeded ? TraceSource.seed(parts.get(0) + ":" + parts.get(1)) : 1);
        }

        @Override
        public Seeded withSeed(long other) {
            String settings = Arrays.stream(name.split(":", -1))
                    .filter(part -> part.contains("="))
                    .map(part -> ":" + part)
                    .collect(Collectors.joining());
            return new Agents((withChats ? "mixed:" : "agents:") + other + settings, workload, withChats, other);
        }

        @Override
        public Trace load(TraceReader reader) {
            Trace agents = new AgentTraceGenerator(workload, seed).generate(name);
            return withChats
                    ? agents.mixedWith(new TraceGenerator(Workload.chats(), seed).generate(name, workload.requests()))
                    : agents;
        }
    }

    /// A file in one of the formats that [TraceReader] knows.
    record File(Path path) implements TraceSource {
        @Override
        public String name() {
            return TraceReader.nameOf(path);
        }

        @Override
        public Trace load(TraceReader reader) throws IOException {
            return reader.read(path);
        }
    }
}
