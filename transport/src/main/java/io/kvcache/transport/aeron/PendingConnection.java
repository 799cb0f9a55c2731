package io.kvcache.transport.aeron;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.logbuffer.ControlledFragmentHandler;
import io.aeron.logbuffer.Header;
import io.kvcache.transport.wire.ProtocolException;
import java.util.function.BooleanSupplier;
import org.agrona.DirectBuffer;
import org.jspecify.annotations.Nullable;

/// A client's stream that has come to a server, until there is one back.
final class PendingConnection {

    private final AeronDriver media;
    private final AeronAddress address;
    private final Image in;
    private @Nullable ConnectMessage connectMessage;
    private @Nullable ProtocolException wrong;

    PendingConnection(AeronDriver media, AeronAddress address, Image in) {
        this.media = media;
        this.address = address;
        this.in = in;
    }

    /// Waits for the first message, and opens the stream back.
    ///
    /// @param wanted whether there is still time
    /// @return null when nothing came of it; the media are as retained as they were
    /// @throws ProtocolException when the first message is not what it should be
    @Nullable
    StreamPair accept(BooleanSupplier wanted) throws ProtocolException {
        AdaptiveIdleStrategy adaptiveIdleStrategy = AdaptiveIdleStrategy.forConnection(address.dedicated());
        while (connectMessage == null && wrong == null) {
            if (in.controlledPoll(this::onFirstFragment, 1) == 0) {
                if (!wanted.getAsBoolean() || in.isClosed() || in.isEndOfStream()) {
                    return null;
                }
                adaptiveIdleStrategy.idle();
            }
        }
        if (wrong != null) {
            throw wrong;
        }
        return connectMessage == null ? null : openReplyStream(connectMessage, wanted);
    }

    private ControlledFragmentHandler.Action onFirstFragment(DirectBuffer from, int offset, int bytes, Header header) {
        try {
            connectMessage = ConnectMessage.read(from, offset, bytes, !address.isIpc());
        } catch (ProtocolException malformed) {
            wrong = malformed;
        }
        return ControlledFragmentHandler.Action.COMMIT;
    }

    private @Nullable StreamPair openReplyStream(ConnectMessage to, BooleanSupplier wanted) {
        Aeron aeron = media.aeron();
        String back = address.channel(address.isIpc() ? "" : source() + ":" + to.port());
        ExclusivePublication out = aeron.addExclusivePublication(back, to.stream());
        AdaptiveIdleStrategy adaptiveIdleStrategy = AdaptiveIdleStrategy.forConnection(address.dedicated());
        while (!out.isConnected()) {
            if (!wanted.getAsBoolean() || in.isClosed()) {
                out.close();
                return null;
            }
            adaptiveIdleStrategy.idle();
        }
        return new StreamPair(media, in, out, null);
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
