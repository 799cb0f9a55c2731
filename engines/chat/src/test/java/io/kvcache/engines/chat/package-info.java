/// Tests of the chat server by clients that know nothing of it.
@NullMarked
package io.kvcache.engines.chat;

import org.jspecify.annotations.NullMarked;
