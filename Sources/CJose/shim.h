#include <cjose/jwk.h>
#include <cjose/jws.h>
