#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <string.h>

// A context of OpenSSL for connections to the numeric addresses of a name.

// At the start of the handshake: libmosquitto has set the numeric address as the server's name.
static inline void cmosq_correct_name(const SSL *ssl, int where, int result) {
    (void)result;
    if (!(where & SSL_CB_HANDSHAKE_START)) return;
    const char *name = X509_VERIFY_PARAM_get0_host(SSL_get0_param((SSL *)ssl), 0);
    if (name != NULL) SSL_set_tlsext_host_name((SSL *)ssl, name);
}

// Otherwise, OpenSSL asks for the password of an encrypted key on the terminal.
static inline int cmosq_no_password(char *buffer, int size, int writes, void *context) {
    (void)buffer;
    (void)size;
    (void)writes;
    (void)context;
    return 0;
}

// Returns a context with the settings of libmosquitto, which verifies certificates; NULL if memory runs out.
static inline SSL_CTX *cmosq_make_context(void) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (context == NULL) return NULL;
    SSL_CTX_set_options(context, SSL_OP_NO_SSLv3 | SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1 | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_default_passwd_cb(context, cmosq_no_password);
    SSL_CTX_set_info_callback(context, cmosq_correct_name);
    return context;
}

// Accepts only certificates for a name, and sends it in the handshake. Returns 1 if that is set.
static inline int cmosq_require_name(SSL_CTX *context, const char *name) {
    X509_VERIFY_PARAM *parameters = SSL_CTX_get0_param(context);
    X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (name[0] == 0 || X509_VERIFY_PARAM_set1_host(parameters, name, 0) != 1) return 0;
    // As libmosquitto, but unlike OpenSSL, accept a wildcard below a single label, such as *.lan: compared as a text.
    const char *dot = strchr(name, '.');
    char wildcard[256] = "*";
    if (dot == NULL || dot == name || dot[1] == 0 || strchr(dot + 1, '.') != NULL) return 1;
    if (strlen(dot) >= sizeof(wildcard) - 1) return 1;
    strcpy(wildcard + 1, dot);
    return X509_VERIFY_PARAM_add1_host(parameters, wildcard, 0) == 1;
}
