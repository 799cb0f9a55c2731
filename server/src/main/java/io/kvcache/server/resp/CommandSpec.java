package io.kvcache.server.resp;

import java.util.List;
import java.util.Locale;
import java.util.Set;

/// A command: how it is called, where its keys and values are, and what runs it.
///
/// @param name in capitals
/// @param lowerName the same in small letters
/// @param arity arguments with the name; negative for at least as many
/// @param flags as `COMMAND` tells them
/// @param keys where the keys are
/// @param values where the values are
/// @param requiredKey the place of the key that has to be known before the command runs; 0 for none
record CommandSpec(
        String name,
        String lowerName,
        int arity,
        List<String> flags,
        ArgumentPositions keys,
        ArgumentPositions values,
        int requiredKey,
        Command command) {

    /// Commands that answer size or expiry of their first key: what is known of a value that has lain on disk since
    /// before the start comes with the value.
    private static final Set<String> NEEDS_METADATA = Set.of(
            "STRLEN",
            "TYPE",
            "EXPIRE",
            "PEXPIRE",
            "EXPIREAT",
            "PEXPIREAT",
            "PERSIST",
            "TTL",
            "PTTL",
            "EXPIRETIME",
            "PEXPIRETIME",
            "MEMORY");

    /// Places of arguments.
    ///
    /// @param first place, 0 for none
    /// @param last place, negative from the end
    /// @param step from one to the next
    record ArgumentPositions(int first, int last, int step) {
        static final ArgumentPositions NONE = new ArgumentPositions(0, 0, 0);
        static final ArgumentPositions FIRST = new ArgumentPositions(1, 1, 1);
        static final ArgumentPositions ALL = new ArgumentPositions(1, -1, 1);

        static ArgumentPositions at(int index) {
            return new ArgumentPositions(index, index, 1);
        }

        boolean has(int index, int count) {
            int end = last < 0 ? count + last : last;
            return first > 0 && index >= first && index <= end && (index - first) % step == 0;
        }
    }

    /// A command without values.
    static CommandSpec of(String name, int arity, String flags, ArgumentPositions keys, Command command) {
        return new CommandSpec(
                name,
                lowerCase(name),
                arity,
                List.of(flags.split(" ")),
                keys,
                ArgumentPositions.NONE,
                requiredKey(name, keys),
                command);
    }

    /// A command that stores values, each one argument behind its key or behind what follows the key.
    static CommandSpec storing(
            String name, int arity, ArgumentPositions keys, ArgumentPositions values, Command command) {
        return new CommandSpec(
                name,
                lowerCase(name),
                arity,
                List.of("write", "denyoom"),
                keys,
                values,
                requiredKey(name, keys),
                command);
    }

    boolean acceptsCount(int count) {
        return arity >= 0 ? count == arity : count >= -arity;
    }

    /// The place of the key that a value belongs to.
    int keyOf(int value) {
        return keys.step() > 1 ? value - 1 : keys.first();
    }

    private static int requiredKey(String name, ArgumentPositions keys) {
        return NEEDS_METADATA.contains(name) ? keys.first() : 0;
    }

    private static String lowerCase(String name) {
        return name.toLowerCase(Locale.ROOT);
    }

    /// Runs one command and writes exactly one reply, now or when it goes on.
    @FunctionalInterface
    interface Command {

        /// Runs the command. The request is closed afterwards: values that were not stored give their room back, words
        /// can still be read.
        void run(RespSession session, RespRequest request, RespEncoder out) throws CommandException;
    }
}
