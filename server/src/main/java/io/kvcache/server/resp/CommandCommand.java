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
        return List.of(CommandSpec.of("COMMAND", -1, "loading stale", CommandSpec.ArgumentPositions.NONE, this::run));
    }

    private void run(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
        String sub = request.count() == 1 ? "" : request.argumentUpperCase(1);
        switch (sub) {
            case "" -> {
                out.beginArray(all.size());
                all.forEach(spec -> describe(spec, out));
            }
            case "COUNT" -> out.writeInteger(all.size());
            case "LIST" -> {
                out.beginArray(all.size());
                all.forEach(spec -> out.writeBulk(spec.lowerName()));
            }
            case "INFO" -> info(request, out);
            case "DOCS" -> out.beginMap(0);
            default -> throw new CommandException("ERR unknown subcommand '" + request.argumentText(1) + "'.");
        }
    }

    private void info(RespRequest request, RespEncoder out) {
        out.beginArray(request.count() - 2);
        for (int i = 2; i < request.count(); i++) {
            String name = request.argumentUpperCase(i);
            all.stream()
                    .filter(spec -> spec.name().equals(name))
                    .findFirst()
                    .ifPresentOrElse(spec -> describe(spec, out), out::writeNull);
        }
    }

    /// Name, arity, flags, places of the keys; then categories, tips, key specifications and subcommands, of which
    /// there are none.
    private static void describe(CommandSpec spec, RespEncoder out) {
        out.beginArray(10);
        out.writeBulk(spec.lowerName());
        out.writeInteger(spec.arity());
        out.beginSet(spec.flags().size());
        spec.flags().forEach(out::writeSimple);
        out.writeInteger(spec.keys().first());
        out.writeInteger(spec.keys().last());
        out.writeInteger(spec.keys().step());
        for (int i = 0; i < 4; i++) {
            out.beginArray(0);
        }
    }
}
