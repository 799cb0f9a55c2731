package io.kvcache.transport.net;

import java.io.IOException;

/// A connection that this side has opened: frames go out by [#send], and come in to the handler while
/// some thread pumps.
///
/// **Threads.** One at a time pumps; any may send. An interrupt of a thread that pumps, or that sends over a
/// connection which is not [shared][#share], may end the connection.
public interface FrameConnection extends FrameSink {

    /// Has several threads send from now on, none of which ends the connection by being interrupted. To be
    /// called before a second thread has it.
    ///
    /// @throws IOException when that is not possible, as too many files are open
    void share() throws IOException;

    /// Waits for bytes, and hands what is complete to the handler.
    ///
    /// @return false when the connection is closed
    boolean pump();

    /// Waits a moment for bytes without sleeping, where that may be worth it: before [#pump] by a thread that
    /// has asked something which is soon answered.
    default void spinUntilReadable() {}

    /// Returns whether the connection is usable, as far as is known.
    boolean isOpen();

    /// For how long bytes that should have moved have not, in nanoseconds; 0 while none should.
    long stalledNanos();
}
