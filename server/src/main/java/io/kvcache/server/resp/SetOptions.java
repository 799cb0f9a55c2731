package io.kvcache.server.resp;

import io.kvcache.server.keyspace.PendingPut.Condition;

/// What may stand behind `SET key value`.
///
/// @param expiry when the value expires, in milliseconds since the epoch; 0 for never
/// @param keepTtl whether it expires when the older value would have
/// @param condition whether it is stored at all
/// @param get whether the older value is the reply
record SetOptions(long expiry, boolean keepTtl, Condition condition, boolean get) {

    static SetOptions parse(RespRequest request, int from, long nowMillis) throws CommandException {
        long expiry = 0;
        boolean keepTtl = false;
        boolean get = false;
        Condition condition = Condition.ALWAYS;
        for (int i = from; i < request.count(); i++) {
            String word = request.argumentUpperCase(i);
            switch (word) {
                case "NX" -> condition = requireUnset(condition, Condition.IF_ABSENT);
                case "XX" -> condition = requireUnset(condition, Condition.IF_PRESENT);
                case "GET" -> get = true;
                case "KEEPTTL" -> keepTtl = true;
                case "EX", "PX", "EXAT", "PXAT" -> {
                    if (expiry != 0 || i + 1 == request.count()) {
                        throw new CommandException(CommandException.SYNTAX);
                    }
                    i++;
                    expiry = ExpiryParser.parse(word, request.argumentLong(i), nowMillis, "set");
                }
                default -> throw new CommandException(CommandException.SYNTAX);
            }
        }
        if (keepTtl && expiry != 0) {
            throw new CommandException(CommandException.SYNTAX);
        }
        return new SetOptions(expiry, keepTtl, condition, get);
    }

    private static Condition requireUnset(Condition before, Condition asked) throws CommandException {
        if (before != Condition.ALWAYS && before != asked) {
            throw new CommandException(CommandException.SYNTAX);
        }
        return asked;
    }
}
