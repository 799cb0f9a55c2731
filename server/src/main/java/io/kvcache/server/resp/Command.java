package io.kvcache.server.resp;

/// Runs one command and writes exactly one reply, now or when it goes on.
@FunctionalInterface
interface Command {

    /// Runs the command. The request is closed afterwards: values that were not stored give their room back, words
    /// can still be read.
    void run(RespClientState session, RespRequest request, RespEncoder out) throws CommandException;
}
