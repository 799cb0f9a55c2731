package io.kvcache.server.config;

import io.kvcache.transport.aeron.AeronAddress;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/// Where other JVMs use the store over Aeron. Loads nothing of Aeron.
///
/// @param address `aeron:ipc` or `aeron:udp?endpoint=HOST:PORT`, with more after `?` and `|`; empty for nowhere
public record AeronConfig(String address) {

    private static final String SETTING = "transport.aeron";

    public AeronConfig {
        if (!address.isEmpty()) {
            parse(address, null);
        }
    }

    /// Nowhere.
    public static AeronConfig disabled() {
        return new AeronConfig("");
    }

    /// Whether there is an endpoint.
    public boolean isEnabled() {
        return !address.isEmpty();
    }

    /// The address with the folder of its driver. Unless it names one, that is one of this user and this
    /// port, so that a user's servers have one each.
    ///
    /// @param port where the server listens, or 0
    public AeronAddress addressFor(int port) {
        return parse(address, AeronAddress.defaultDirectory("-" + port));
    }

    private static AeronAddress parse(String address, @Nullable Path usual) {
        try {
            return AeronAddress.parse(address, usual);
        } catch (IllegalArgumentException wrong) {
            throw new IllegalArgumentException(SETTING + " is " + address + ": " + wrong.getMessage(), wrong);
        }
    }

    /// Looks at it together with where the server listens and who may come in.
    ///
    /// @param port where the server listens, or 0
    /// @param open whether nobody has to show a secret, and nobody has said that this is meant
    /// @throws IllegalArgumentException when they do not go together
    void validate(int port, boolean open) {
        if (!isEnabled()) {
            return;
        }
        AeronAddress parsed = parse(address, null);
        if (parsed.isIpc() && parsed.folder() == null && parsed.driver() == null && port == 0) {
            throw new IllegalArgumentException(SETTING + " is " + address
                    + "; it takes transport.listen with a port beside it, or dir=FOLDER, so that clients find it");
        }
        if (!parsed.isIpc() && open && !isLocal(parsed)) {
            throw new IllegalArgumentException(SETTING + " is " + address
                    + ", which others can reach, and nobody has to show a secret; it takes a loopback address,"
                    + " transport.secret_file, a secret_file at each tenant, or transport.without_auth: true");
        }
    }

    private static boolean isLocal(AeronAddress udp) {
        if (udp.socketAddress().isUnresolved()) {
            throw new IllegalArgumentException(
                    SETTING + " is " + udp.text() + ", whose host is not known; it takes an address of this machine");
        }
        return udp.socketAddress().getAddress().isLoopbackAddress();
    }
}
