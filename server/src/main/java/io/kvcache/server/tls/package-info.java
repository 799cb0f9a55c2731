/// Certificates: how they are read, and read again when their files change.
///
/// May import the configuration and nothing else of the server.
@NullMarked
package io.kvcache.server.tls;

import org.jspecify.annotations.NullMarked;
