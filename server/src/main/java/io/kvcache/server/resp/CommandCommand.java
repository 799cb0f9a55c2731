package io.kvcache.server.resp;

import java.util.Collection;
import java.util.List;

/// COMMAND: tells clients which commands there are and where their keys are.
final class CommandCommand {

    private final Collection<CommandSpec> all;

    /// @param all filled by the time the first client asks
    CommandCommand(Collection<CommandSpec> all) {
        this.all = all;
    }

    List<CommandSpec> commands() {
        return List.of(CommandSpec.of("COMMAND", -1, "loading stale", CommandSpec.Places.NONE, this::run));
    }

    private void run(RespSession session, Request request, Replies out) throws CommandException {
        String sub = request.count() == 1 ? "" : request.word(1);
        switch (sub) {
            case "" -> {
                out.array(all.size());
                all.forEach(spec -> describe(spec, out));
            }
            case "COUNT" -> out.integer(all.size());
            case "LIST" -> {
                out.array(all.size());
                all.forEach(spec -> out.bulk(spec.lowerName()));
            }
            case "INFO" -> info(request, out);
            case "DOCS" -> out.map(0);
            default -> throw new CommandException("ERR unknown subcommand '" + request.text(1) + "'.");
        }
    }

    private void info(Request request, Replies out) {
        out.array(request.count() - 2);
        for (int i = 2; i < request.count(); i++) {
            String name = request.word(i);
            all.stream()
                    .filter(spec -> spec.name().equals(name))
                    .findFirst()
                    .ifPresentOrElse(spec -> describe(spec, out), out::nil);
        }
    }

    /// Name, arity, flags, places of the keys; then categories, tips, key specifications and subcommands, of which
    /// there are none.
    private static void describe(CommandSpec spec, Replies out) {
        out.array(10);
        out.bulk(spec.lowerName());
        out.integer(spec.arity());
        out.set(spec.flags().size());
        spec.flags().forEach(out::simple);
        out.integer(spec.keys().first());
        out.integer(spec.keys().last());
        out.integer(spec.keys().step());
        for (int i = 0; i < 4; i++) {
            out.array(0);
        }
    }
}
