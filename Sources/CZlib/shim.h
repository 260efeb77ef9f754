#include <string.h>
#include <zlib.h>

// Begins a gzip stream. deflateInit2 is a macro, which Swift cannot call.
static inline int czlib_begin(z_stream *stream, int level, int window_bits, int memory_level) {
    memset(stream, 0, sizeof(*stream));
    return deflateInit2(stream, level, Z_DEFLATED, window_bits + 16, memory_level, Z_DEFAULT_STRATEGY);
}
