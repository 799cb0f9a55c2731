package io.kvcache.server.resp;

/// Times as commands give them.
final class ExpiryParser {

    /// The year 10889: far enough, and adding to it does not overflow.
    private static final long MAX_MILLIS = 1L << 48;

    private ExpiryParser() {}

    /// Milliseconds since the epoch.
    ///
    /// @param unit EX or PX for a time from now, EXAT or PXAT for a moment; seconds or milliseconds
    /// @throws CommandException when it is not positive or too far away
    static long parse(String unit, long amount, long nowMillis, String command) throws CommandException {
        if (amount <= 0) {
            throw invalid(command);
        }
        return parseAllowingPast(unit, amount, nowMillis, command);
    }

    /// As [#parse], and takes moments that have passed, for EXPIRE.
    static long parseAllowingPast(String unit, long amount, long nowMillis, String command) throws CommandException {
        boolean seconds = unit.startsWith("EX");
        long most = seconds ? MAX_MILLIS / 1000 : MAX_MILLIS;
        if (amount > most || amount < -most) {
            throw invalid(command);
        }
        long millis = seconds ? amount * 1000 : amount;
        return unit.endsWith("AT") ? millis : nowMillis + millis;
    }

    private static CommandException invalid(String command) {
        return new CommandException("ERR invalid expire time in '" + command + "' command");
    }
}
