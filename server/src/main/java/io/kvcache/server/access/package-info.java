/// Authentication: tenants' passwords, the credentials that each listener requires of its clients, and the server's own
/// certificate.
///
/// [io.kvcache.server.access.PasswordAuthenticator] checks passwords, and [io.kvcache.server.access.ListenerAuth]
/// applies
/// them at one listener. [io.kvcache.server.access.ReloadableTls] holds a certificate.
///
/// May not import a protocol or the keyspace.
@NullMarked
package io.kvcache.server.access;

import org.jspecify.annotations.NullMarked;
