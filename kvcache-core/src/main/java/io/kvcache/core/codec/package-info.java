/// Lossless coding of blocks for disks and slow links: [ChunkCoder] for one chunk, [BlockCodec] for a whole block.
@NullMarked
package io.kvcache.core.codec;

import org.jspecify.annotations.NullMarked;
