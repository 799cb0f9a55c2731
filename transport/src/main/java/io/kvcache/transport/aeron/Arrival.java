package io.kvcache.transport.aeron;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.logbuffer.ControlledFragmentHandler;
import io.aeron.logbuffer.Header;
import io.kvcache.transport.wire.Violation;
import java.util.function.BooleanSupplier;
import org.agrona.DirectBuffer;
import org.jspecify.annotations.Nullable;

/// A client's stream that has come to a server, until there is one back.
final class Arrival {

    private final AeronMedia media;
    private final AeronAddress address;
    private final Image in;
    private @Nullable Connect connect;
    private @Nullable Violation wrong;

    Arrival(AeronMedia media, AeronAddress address, Image in) {
        this.media = media;
        this.address = address;
        this.in = in;
    }

    /// Waits for the first message, and opens the stream back.
    ///
    /// @param wanted whether there is still time
    /// @return null when nothing came of it; the media are as retained as they were
    /// @throws Violation when the first message is not what it should be
    @Nullable
    Streams meet(BooleanSupplier wanted) throws Violation {
        Pause pause = Pause.ofConnection(address.dedicated());
        while (connect == null && wrong == null) {
            if (in.controlledPoll(this::first, 1) == 0) {
                if (!wanted.getAsBoolean() || in.isClosed() || in.isEndOfStream()) {
                    return null;
                }
                pause.idle();
            }
        }
        if (wrong != null) {
            throw wrong;
        }
        return connect == null ? null : answer(connect, wanted);
    }

    private ControlledFragmentHandler.Action first(DirectBuffer from, int offset, int bytes, Header header) {
        try {
            connect = Connect.read(from, offset, bytes, !address.ipc());
        } catch (Violation malformed) {
            wrong = malformed;
        }
        return ControlledFragmentHandler.Action.COMMIT;
    }

    private @Nullable Streams answer(Connect to, BooleanSupplier wanted) {
        Aeron aeron = media.aeron();
        String back = address.channel(address.ipc() ? "" : source() + ":" + to.port());
        ExclusivePublication out = aeron.addExclusivePublication(back, to.stream());
        Pause pause = Pause.ofConnection(address.dedicated());
        while (!out.isConnected()) {
            if (!wanted.getAsBoolean() || in.isClosed()) {
                out.close();
                return null;
            }
            pause.idle();
        }
        return new Streams(media, in, out, null);
    }

    /// The host that the stream comes from.
    private String source() {
        String from = in.sourceIdentity();
        return from.substring(0, from.lastIndexOf(':'));
    }

    void reject(String why) {
        if (!in.isClosed()) {
            in.reject(why);
        }
    }
}
