#include <curl/curl.h>

// curl_easy_setopt is variadic, which Swift can't call.

static inline CURLcode ccurl_start(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }

typedef size_t (*ccurl_data)(char *data, size_t size, size_t count, void *context);
typedef int (*ccurl_progress)(void *context, curl_off_t, curl_off_t, curl_off_t, curl_off_t);

#define CCURL_SET(option, value)                                              \
    if (code == CURLE_OK) code = curl_easy_setopt(handle, option, value)

/// Prepares a handle for one request over HTTP or HTTPS. The body of its response goes to `response`, with `context`. Redirects are
/// not followed.
///
/// - Parameters:
///   - body: the request's body, which must stay valid; null for none.
///   - timeout: maximum time of the request, in milliseconds; 0 for none.
///   - ca_file: PEM file of the authorities that sign the server's certificate; null for the system's.
///   - verifies: whether the server's certificate is verified.
///   - uses_proxy: whether a proxy of the environment is used.
///   - progress: called about once a second with `context`; ends the request if it returns another value than 0.
static inline CURLcode ccurl_prepare_request(
    CURL *handle, const char *url, const char *method, struct curl_slist *headers, const void *body, long body_size,
    long timeout, const char *ca_file, int verifies, int uses_proxy, ccurl_data response, ccurl_progress progress, void *context) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_URL, url);
    CCURL_SET(CURLOPT_PROTOCOLS_STR, "http,https");
    if (body) {
        CCURL_SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body_size);
        CCURL_SET(CURLOPT_POSTFIELDS, body);
    }
    CCURL_SET(CURLOPT_CUSTOMREQUEST, method);
    CCURL_SET(CURLOPT_HTTPHEADER, headers);
    CCURL_SET(CURLOPT_FOLLOWLOCATION, 0L);
    CCURL_SET(CURLOPT_NOSIGNAL, 1L);
    CCURL_SET(CURLOPT_CONNECTTIMEOUT, 5L);
    CCURL_SET(CURLOPT_TIMEOUT_MS, timeout);
    CCURL_SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    CCURL_SET(CURLOPT_USERAGENT, "coaty-gateway");
    if (ca_file) CCURL_SET(CURLOPT_CAINFO, ca_file);
    if (!verifies) {
        CCURL_SET(CURLOPT_SSL_VERIFYPEER, 0L);
        CCURL_SET(CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (!uses_proxy) CCURL_SET(CURLOPT_PROXY, "");
    CCURL_SET(CURLOPT_WRITEFUNCTION, response);
    CCURL_SET(CURLOPT_WRITEDATA, context);
    CCURL_SET(CURLOPT_NOPROGRESS, 0L);
    CCURL_SET(CURLOPT_XFERINFOFUNCTION, progress);
    CCURL_SET(CURLOPT_XFERINFODATA, context);
    return code;
}

/// Prepares a handle for one GET request.
///
/// A body goes to `body` and each header line to `header`, with `context`. `progress` is called about once a second and
/// ends the request if it returns another value than 0.
///
/// - Parameters:
///   - protocols: the only allowed scheme.
///   - timeout: maximum time of the request, in milliseconds.
///   - ca_file: PEM file of the authorities that sign the server's certificate; null for the system's.
///   - is_local: whether no proxy of the environment is used.
static inline CURLcode ccurl_prepare(
    CURL *handle, const char *url, const char *protocols, long timeout, const char *ca_file, int is_local, ccurl_data body,
    ccurl_data header, ccurl_progress progress, void *context) {
    CURLcode code = ccurl_prepare_request(handle, url, "GET", 0, 0, 0, timeout, ca_file, 1, !is_local, body, progress, context);
    CCURL_SET(CURLOPT_PROTOCOLS_STR, protocols);
    CCURL_SET(CURLOPT_HEADERFUNCTION, header);
    CCURL_SET(CURLOPT_HEADERDATA, context);
    return code;
}

#undef CCURL_SET

/// Returns the status code of the last response; 0 if there was none.
static inline long ccurl_status(CURL *handle) {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/// Returns the media type of the last response; null if there is none.
static inline const char *ccurl_media_type(CURL *handle) {
    const char *type = 0;
    curl_easy_getinfo(handle, CURLINFO_CONTENT_TYPE, &type);
    return type;
}
