/// How the server starts in its container image, which has no shell.
@NullMarked
package io.kvcache.server.image;

import org.jspecify.annotations.NullMarked;
