/// HTTP/1.1: objects by key, and pages for operators.
///
/// May not import another protocol.
@NullMarked
package io.kvcache.server.http;

import org.jspecify.annotations.NullMarked;
