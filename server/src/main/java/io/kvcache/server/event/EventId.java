package io.kvcache.server.event;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Names an event: the run of the server and the number within it, as `m3k2x1-1234`.
///
/// @param sequence -1 before the first event
record EventId(String epoch, long sequence) {

    private static final Pattern FORMAT = Pattern.compile("(\\w{1,32})-(-1|\\d{1,18})");

    /// Reads one.
    ///
    /// @throws IllegalArgumentException when it is none
    static EventId parse(String text) {
        Matcher form = FORMAT.matcher(text);
        if (!form.matches()) {
            throw new IllegalArgumentException("it takes the id of an event that came before");
        }
        return new EventId(form.group(1), Long.parseLong(form.group(2)));
    }

    @Override
    public String toString() {
        return epoch + "-" + sequence;
    }
}
