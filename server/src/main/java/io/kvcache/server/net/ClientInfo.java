package io.kvcache.server.net;

/// What a client has said of itself, and whose it is.
///
/// @param tenant whose values it sees; empty while that is not known, or changes with each request
/// @param name that it has chosen; empty without one
/// @param library that it uses, or empty
/// @param libraryVersion of that, or empty
/// @param version of the protocol, where it has several
public record ClientInfo(String tenant, String name, String library, String libraryVersion, int version) {

    /// Nothing was said.
    static final ClientInfo NONE = new ClientInfo("", "", "", "", 2);

    /// The same of another tenant.
    public ClientInfo withTenant(String now) {
        return new ClientInfo(now, name, library, libraryVersion, version);
    }

    /// The same by another name.
    public ClientInfo withName(String chosen) {
        return new ClientInfo(tenant, chosen, library, libraryVersion, version);
    }

    /// The same with another library.
    public ClientInfo withLibrary(String used) {
        return new ClientInfo(tenant, name, used, libraryVersion, version);
    }

    /// The same with another version of its library.
    public ClientInfo withLibraryVersion(String used) {
        return new ClientInfo(tenant, name, library, used, version);
    }

    /// The same in another version of the protocol.
    public ClientInfo withVersion(int chosen) {
        return new ClientInfo(tenant, name, library, libraryVersion, chosen);
    }
}
