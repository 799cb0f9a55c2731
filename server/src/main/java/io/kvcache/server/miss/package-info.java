/// Why what is asked for is not here.
///
/// [io.kvcache.server.miss.MissCauses] remembers what left last, for values and for blocks;
/// [io.kvcache.server.miss.MissLog] the last look-ups that found too little.
///
/// May import nothing of the server.
@NullMarked
package io.kvcache.server.miss;

import org.jspecify.annotations.NullMarked;
