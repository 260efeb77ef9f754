#ifndef COPENSSL_SHIM_H
#define COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

// Functions for OpenSSL's macros and callbacks that the gateway needs and Swift cannot use.

// Selects HTTP/1.1. A client that offers only other protocols gets a fatal alert (RFC 7301, section 3.2).
static inline int cssl_select_protocol(
    SSL *ssl, const unsigned char **chosen, unsigned char *length, const unsigned char *offered, unsigned int size,
    void *context
) {
    static const unsigned char http[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
    (void)ssl;
    (void)context;
    int result = SSL_select_next_proto((unsigned char **)chosen, length, http, sizeof(http), offered, size);
    return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// Prevents OpenSSL from asking for the password of an encrypted key on the terminal.
static inline int cssl_no_password(char *buffer, int size, int writes, void *context) {
    (void)buffer;
    (void)size;
    (void)writes;
    (void)context;
    return 0;
}

/// Returns a context for servers without a certificate: TLS 1.2 and 1.3, no renegotiation, one stateless ticket. NULL
/// if memory runs out.
static inline SSL_CTX *cssl_server_context(void) {
    static const unsigned char name[] = "coaty-gateway";
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (!context) return NULL;
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    // A client that closes without close_notify counts as closed normally: HTTP and WebSocket detect truncation
    // themselves.
    SSL_CTX_set_options(
        context,
        SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(
        context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context, 1);
    // A session with a client certificate can be resumed only if this is set.
    SSL_CTX_set_session_id_context(context, name, sizeof(name) - 1);
    SSL_CTX_set_alpn_select_cb(context, cssl_select_protocol, NULL);
    SSL_CTX_set_default_passwd_cb(context, cssl_no_password);
    return context;
}

/// Reads the certificates of the authorities that sign client certificates. Returns 0 if the file contains none.
static inline int cssl_verify_clients(SSL_CTX *context, const char *file, int required) {
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(file);
    if (!names) return 0;
    SSL_CTX_set_client_CA_list(context, names);
    if (SSL_CTX_load_verify_file(context, file) != 1) return 0;
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), NULL);
    return 1;
}

/// Returns a context with the certificates, key and authorities of another context and new ticket keys. NULL if memory
/// runs out.
static inline SSL_CTX *cssl_renewed_context(SSL_CTX *old) {
    STACK_OF(X509) *chain = NULL;
    SSL_CTX *context = cssl_server_context();
    if (!context) return NULL;
    SSL_CTX_get0_chain_certs(old, &chain);
    STACK_OF(X509_NAME) *names = SSL_CTX_get_client_CA_list(old);
    X509 *certificate = SSL_CTX_get0_certificate(old);
    if (SSL_CTX_use_cert_and_key(context, certificate, SSL_CTX_get0_privatekey(old), chain, 1) != 1
        || (names && !(names = SSL_dup_CA_list(names)))) {
        SSL_CTX_free(context);
        return NULL;
    }
    SSL_CTX_set_client_CA_list(context, names);
    SSL_CTX_set1_cert_store(context, SSL_CTX_get_cert_store(old));
    SSL_CTX_set_verify(context, SSL_CTX_get_verify_mode(old), NULL);
    return context;
}

/// Writes the text of the first error in the thread's queue to a buffer, and empties the queue.
static inline void cssl_take_error(char *buffer, size_t size) {
    unsigned long code = ERR_get_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    strncpy(buffer, reason ? reason : "unknown error", size - 1);
    buffer[size - 1] = 0;
    ERR_clear_error();
}

/// Returns whether the first error in the thread's queue is that the peer closed without close_notify.
static inline int cssl_is_unexpected_end(void) {
    return ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
}

static inline int64_t cssl_seconds(const ASN1_TIME *text) {
    struct tm time;
    if (ASN1_TIME_to_tm(text, &time) != 1) return 0;
    return (int64_t)timegm(&time);
}

/// Returns the start of a certificate's validity in seconds since 1970; 0 if it can't be read.
static inline int64_t cssl_beginning(const X509 *certificate) { return cssl_seconds(X509_get0_notBefore(certificate)); }

/// Returns the end of a certificate's validity in seconds since 1970; 0 if it can't be read.
static inline int64_t cssl_expiry(const X509 *certificate) { return cssl_seconds(X509_get0_notAfter(certificate)); }

enum { CSSL_COMMON_NAME = 0, CSSL_DNS = 1, CSSL_URI = 2, CSSL_EMAIL = 3 };

/// Calls `found` with the certificate's common names and its alternative names.
static inline void cssl_each_name(
    X509 *certificate, void *context, void (*found)(void *context, int kind, const unsigned char *bytes, size_t count)
) {
    X509_NAME *subject = X509_get_subject_name(certificate);
    int index = -1;
    while ((index = X509_NAME_get_index_by_NID(subject, NID_commonName, index)) >= 0) {
        unsigned char *text = NULL;
        int length = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, index)));
        if (length >= 0) {
            found(context, CSSL_COMMON_NAME, text, (size_t)length);
            OPENSSL_free(text);
        }
    }
    GENERAL_NAMES *names = (GENERAL_NAMES *)X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    for (int number = 0; names && number < sk_GENERAL_NAME_num(names); number++) {
        int type = 0;
        const ASN1_STRING *value = (const ASN1_STRING *)GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, number), &type);
        int kind = type == GEN_DNS ? CSSL_DNS : type == GEN_URI ? CSSL_URI : type == GEN_EMAIL ? CSSL_EMAIL : -1;
        if (kind < 0 || !value) continue;
        found(context, kind, ASN1_STRING_get0_data(value), (size_t)ASN1_STRING_length(value));
    }
    GENERAL_NAMES_free(names);
}

/// Returns a context that computes 64-bit SipHash values. NULL if OpenSSL does not provide them.
static inline EVP_MAC_CTX *cssl_siphash_context(void) {
    size_t size = 8;
    OSSL_PARAM parameters[] = {OSSL_PARAM_construct_size_t("size", &size), OSSL_PARAM_construct_end()};
    EVP_MAC *algorithm = EVP_MAC_fetch(NULL, "SIPHASH", NULL);
    EVP_MAC_CTX *context = algorithm ? EVP_MAC_CTX_new(algorithm) : NULL;
    EVP_MAC_free(algorithm);
    if (context && EVP_MAC_CTX_set_params(context, parameters) == 1) return context;
    EVP_MAC_CTX_free(context);
    return NULL;
}

#endif
