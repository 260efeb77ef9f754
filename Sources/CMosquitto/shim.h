#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <string.h>

// A context of OpenSSL for the connections to a broker.

// What is known of the TLS handshake of a connection, for the cause of its end.
typedef struct {
    // Whether it has ended.
    bool is_over;
    // Whether the broker has asked for a certificate, and may still refuse it.
    bool may_refuse_certificate;
    // The numeric address as it was configured; empty if a name was configured.
    char address[64];
} cmosq_handshake;

static inline cmosq_handshake *cmosq_handshake_of(const SSL *ssl) {
    return (cmosq_handshake *)SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
}

// libmosquitto drops the connection's state together with a failed connection, so this is noted as it happens: the
// handshake can end, and the connection fail, within one call, even that which connects.
static inline void cmosq_note_handshake(const SSL *ssl, int where, int result) {
    (void)result;
    if (where & SSL_CB_HANDSHAKE_START) {
        // libmosquitto has set the numeric address as the server's name.
        const char *name = X509_VERIFY_PARAM_get0_host(SSL_get0_param((SSL *)ssl), 0);
        if (name != NULL) SSL_set_tlsext_host_name((SSL *)ssl, name);
    }
    if (where & SSL_CB_HANDSHAKE_DONE) {
        cmosq_handshake_of(ssl)->is_over = true;
        // Before TLS 1.3, the broker has checked the certificate.
        if (SSL_version(ssl) < TLS1_3_VERSION) cmosq_handshake_of(ssl)->may_refuse_certificate = false;
    }
    // Brokers send tickets only to clients that they have accepted.
    if ((where & SSL_CB_LOOP) && SSL_get_state(ssl) == TLS_ST_CR_SESSION_TICKET) {
        cmosq_handshake_of(ssl)->may_refuse_certificate = false;
    }
}

// OpenSSL asks for the certificate to send.
static inline int cmosq_note_request(SSL *ssl, void *handshake) {
    (void)ssl;
    ((cmosq_handshake *)handshake)->may_refuse_certificate = true;
    return 1;
}

// As libmosquitto, but unlike OpenSSL, accept a certificate whose subject or DNS name is the address.
static inline int cmosq_verify(int is_valid, X509_STORE_CTX *store) {
    if (is_valid || X509_STORE_CTX_get_error(store) != X509_V_ERR_IP_ADDRESS_MISMATCH) return is_valid;
    const SSL *ssl = (const SSL *)X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    const char *address = cmosq_handshake_of(ssl)->address;
    if (address[0] == 0) return 0;
    X509 *certificate = X509_STORE_CTX_get_current_cert(store);
    if (X509_check_host(certificate, address, 0, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, NULL) != 1) return 0;
    X509_STORE_CTX_set_error(store, X509_V_OK);
    return 1;
}

// Otherwise, OpenSSL asks for the password of an encrypted key on the terminal.
static inline int cmosq_no_password(char *buffer, int size, int writes, void *context) {
    (void)buffer;
    (void)size;
    (void)writes;
    (void)context;
    return 0;
}

// Returns a context with the settings of libmosquitto, which verifies certificates; NULL if memory runs out. It notes
// the handshake, which must outlive it.
static inline SSL_CTX *cmosq_make_context(cmosq_handshake *handshake) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (context == NULL) return NULL;
    SSL_CTX_set_options(context, SSL_OP_NO_SSLv3 | SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1 | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, cmosq_verify);
    SSL_CTX_set_default_passwd_cb(context, cmosq_no_password);
    SSL_CTX_set_app_data(context, handshake);
    SSL_CTX_set_info_callback(context, cmosq_note_handshake);
    SSL_CTX_set_cert_cb(context, cmosq_note_request, handshake);
    return context;
}

// Accepts only certificates for a numeric address. Both texts of it have no scope. Returns 1 if that is set.
static inline int cmosq_require_address(SSL_CTX *context, const char *address, const char *configured) {
    cmosq_handshake *handshake = (cmosq_handshake *)SSL_CTX_get_app_data(context);
    if (strlen(configured) < sizeof(handshake->address)) strcpy(handshake->address, configured);
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_CTX_get0_param(context), address);
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
