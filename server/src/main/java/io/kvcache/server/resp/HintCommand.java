package io.kvcache.server.resp;

import io.kvcache.core.ObjectHint;
import io.kvcache.server.keyspace.HintLimits;
import io.kvcache.server.keyspace.KeyspaceRouter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// KV.HINT: what only a client knows of keys. Redis has no such command.
final class HintCommand {

    private static final String KINDS = "EXPECT, RETURN milliseconds, FORGET, PIN milliseconds, UNPIN, LABEL kind turn,"
            + " SESSION kind session turn more|last, WEIGH weight, EXPIRE milliseconds; keys follow";

    private final KeyspaceRouter reach;

    HintCommand(KeyspaceRouter reach) {
        this.reach = reach;
    }

    List<CommandSpec> commands() {
        return List.of(CommandSpec.of("KV.HINT", -3, "fast", CommandSpec.Places.NONE, this::hint));
    }

    private void hint(RespSession session, Request request, Replies out) throws CommandException {
        int first = switch (request.word(1)) {
            case "EXPECT", "FORGET", "UNPIN" -> 2;
            case "RETURN", "PIN", "WEIGH", "EXPIRE" -> 3;
            case "LABEL" -> 4;
            case "SESSION" -> 6;
            default -> throw new CommandException("ERR unknown hint '" + request.text(1) + "'. KV.HINT takes " + KINDS);
        };
        if (request.count() <= first) {
            throw new CommandException(
                    "ERR wrong number of arguments for 'kv.hint " + request.text(1) + "'. KV.HINT takes " + KINDS);
        }
        try {
            HintLimits.requireKeys(request.count() - first);
            out.integer(take(request, first, hint(request)));
        } catch (IllegalArgumentException mistake) {
            throw new CommandException("ERR " + mistake.getMessage());
        }
    }

    private static ObjectHint hint(Request request) throws CommandException {
        return switch (request.word(1)) {
            case "EXPECT" -> HintLimits.expect(0);
            case "RETURN" -> HintLimits.expect(request.integer(2));
            case "FORGET" -> new ObjectHint.Forget();
            case "PIN" -> HintLimits.pin(request.integer(2));
            case "UNPIN" -> HintLimits.unpin();
            case "LABEL" -> HintLimits.label(request.text(2), request.text(3));
            case "SESSION" ->
                HintLimits.session(request.text(2), request.integer(3), request.integer(4), isLast(request.text(5)));
            case "WEIGH" -> HintLimits.weigh(weight(request.text(2)));
            default -> HintLimits.expire(request.integer(2));
        };
    }

    private static boolean isLast(String stage) {
        return switch (stage.toLowerCase(Locale.ROOT)) {
            case "more" -> false;
            case "last" -> true;
            default -> throw new IllegalArgumentException("stage is " + stage + "; it takes more, last");
        };
    }

    private static double weight(String text) {
        try {
            return Double.parseDouble(text);
        } catch (NumberFormatException _) {
            throw new IllegalArgumentException("weight is " + text + "; it takes 0 to 1");
        }
    }

    private int take(Request request, int first, ObjectHint hint) {
        List<byte[]> keys = new ArrayList<>(request.count() - first);
        for (int i = first; i < request.count(); i++) {
            HintLimits.requireKey(request.bytes(i));
            keys.add(request.bytes(i));
        }
        return reach.applyHint(keys, hint);
    }
}
