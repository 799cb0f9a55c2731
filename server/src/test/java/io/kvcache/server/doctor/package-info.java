@NullMarked
package io.kvcache.server.doctor;

import org.jspecify.annotations.NullMarked;
