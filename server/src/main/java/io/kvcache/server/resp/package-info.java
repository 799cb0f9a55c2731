/// Redis' protocol, versions 2 and 3: the commands that caches are used with, over a keyspace.
///
/// [io.kvcache.server.resp.RespDecoder] turns bytes into requests and streams values to their slots on the way; one
/// class a family of commands answers them; [io.kvcache.server.resp.RespEncoder] writes the answers.
///
/// May not import another protocol.
@NullMarked
package io.kvcache.server.resp;

import org.jspecify.annotations.NullMarked;
