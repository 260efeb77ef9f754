#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <microhttpd.h>
