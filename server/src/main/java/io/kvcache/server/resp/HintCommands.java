package io.kvcache.server.resp;

import io.kvcache.core.ObjectHint;
import io.kvcache.server.keyspace.HintLimits;
import io.kvcache.server.keyspace.HintLimits.HintNumber;
import io.kvcache.server.keyspace.KeyspaceRouter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// KV.HINT: what only a client knows of keys. KV.PREFIX: counts the leading keys that are here, and pins them. Redis
/// has
/// no such commands.
final class HintCommands {

    private static final String KINDS = "EXPECT, RETURN milliseconds, FORGET, PIN milliseconds, UNPIN,"
            + " LABEL chat|agent|batch|other first|later|last, SESSION kind session turn more|last, WEIGH weight,"
            + " EXPIRE milliseconds; keys follow";

    private static final int FIRST_PREFIX_KEY = 2;

    private final KeyspaceRouter keyspaceRouter;

    HintCommands(KeyspaceRouter keyspaceRouter) {
        this.keyspaceRouter = keyspaceRouter;
    }

    List<CommandSpec> commands() {
        return List.of(
                CommandSpec.of("KV.HINT", -3, "fast", CommandSpec.ArgumentPositions.NONE, this::parseHint),
                CommandSpec.of(
                        "KV.PREFIX",
                        -3,
                        "fast",
                        new CommandSpec.ArgumentPositions(FIRST_PREFIX_KEY, -1, 1),
                        this::pinPrefix));
    }

    private void parseHint(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
        int first = switch (request.argumentUpperCase(1)) {
            case "EXPECT", "FORGET", "UNPIN" -> 2;
            case "RETURN", "PIN", "WEIGH", "EXPIRE" -> 3;
            case "LABEL" -> 4;
            case "SESSION" -> 6;
            default ->
                throw new CommandException(
                        "ERR unknown hint '" + request.argumentText(1) + "'. KV.HINT takes " + KINDS);
        };
        if (request.count() <= first) {
            throw new CommandException("ERR wrong number of arguments for 'kv.hint " + request.argumentText(1)
                    + "'. KV.HINT takes " + KINDS);
        }
        try {
            HintLimits.requireKeys(request.count() - first);
            ObjectHint hint = parseHint(request);
            keyspaceRouter.applyHint(keys(request, first), hint, session::yieldLoop, out::writeInteger);
        } catch (IllegalArgumentException mistake) {
            throw new CommandException("ERR " + mistake.getMessage());
        }
    }

    private void pinPrefix(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
        try {
            HintLimits.requirePrefixKeys(request.count() - FIRST_PREFIX_KEY);
            Duration pinTime = HintLimits.prefixPin(request.argumentLong(1, HintNumber.PREFIX_MILLIS));
            keyspaceRouter.pinPrefix(keys(request, FIRST_PREFIX_KEY), pinTime, session::yieldLoop, out::writeInteger);
        } catch (IllegalArgumentException mistake) {
            throw new CommandException("ERR " + mistake.getMessage());
        }
    }

    private static ObjectHint parseHint(RespRequest request) {
        return switch (request.argumentUpperCase(1)) {
            case "EXPECT" -> HintLimits.expect(0);
            case "RETURN" -> HintLimits.expect(request.argumentLong(2, HintNumber.DELAY_MILLIS));
            case "FORGET" -> new ObjectHint.Forget();
            case "PIN" -> HintLimits.pin(request.argumentLong(2, HintNumber.PIN_MILLIS));
            case "UNPIN" -> HintLimits.unpin();
            case "LABEL" -> HintLimits.label(request.argumentText(2), request.argumentText(3));
            case "SESSION" ->
                HintLimits.session(
                        request.argumentText(2),
                        request.argumentLong(3, HintNumber.SESSION),
                        request.argumentLong(4, HintNumber.TURN),
                        isLast(request.argumentText(5)));
            case "WEIGH" -> HintLimits.weigh(weight(request.argumentText(2)));
            default -> HintLimits.expire(request.argumentLong(2, HintNumber.DELAY_MILLIS));
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

    /// The keys of a request, from an argument to the last one.
    ///
    /// @throws IllegalArgumentException that names the first key that cannot be
    private static List<byte[]> keys(RespRequest request, int first) {
        List<byte[]> keys = new ArrayList<>(request.count() - first);
        for (int i = first; i < request.count(); i++) {
            HintLimits.requireKey(request.argument(i));
            keys.add(request.argument(i));
        }
        return keys;
    }
}
