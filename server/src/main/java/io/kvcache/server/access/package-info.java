/// Authentication: tenants' passwords, and what each listener requires of its clients.
///
/// [io.kvcache.server.access.PasswordAuthenticator] checks passwords, [io.kvcache.server.access.ListenerAuth]
/// stands at one listener.
///
/// May not import a protocol or the keyspace.
@NullMarked
package io.kvcache.server.access;

import org.jspecify.annotations.NullMarked;
