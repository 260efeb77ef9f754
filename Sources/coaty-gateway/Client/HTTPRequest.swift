import CCurl
import Coaty

/// One HTTP request, which blocks its thread.
struct HTTPRequest {
    /// Maximum size of a response that is read as a whole, in bytes.
    private static let maximumBody = 256 << 20
    /// Maximum size of a line of a streamed response, in bytes: more than the largest event.
    private static let maximumLine = 64 << 20
    /// libcurl requires one call of this before its first use.
    private static let isReady = ccurl_start() == CURLE_OK

    let url: String
    var method = "GET"
    var headers: [String] = []
    var body: [UInt8]?
    /// The maximum time; nil for a stream.
    var timeout: Duration? = .seconds(600)
    /// PEM file of the authorities that sign the gateway's certificate; nil for the system's.
    var authorities: String?
    var verifiesCertificate = true

    /// A response that was read as a whole.
    struct Answer {
        let status: Int
        let body: [UInt8]

        /// The reason of a refusal: that of a problem (RFC 9457), or the status.
        var problem: String {
            guard let json = try? JSONDocument(body).root, let title = json["title"]?.string else {
                return "the status of the response is \(status)"
            }
            return "\(json["detail"]?.string ?? title) (\(status))"
        }
    }

    /// Sends the request, and reads the whole response.
    ///
    /// - Throws: ``Failure/unreachable(url:reason:)``
    func answer() throws(Failure) -> Answer {
        try perform(Transfer(onLine: nil))
    }

    /// Sends the request, and passes each line of a successful response on when it arrives, without its line end.
    ///
    /// - Parameter onLine: returns whether to continue.
    /// - Returns: the response, without a body if its lines were passed on.
    /// - Throws: ``Failure/unreachable(url:reason:)``, also if the connection ends within the response.
    func lines(_ onLine: @escaping (ArraySlice<UInt8>) -> Bool) throws(Failure) -> Answer {
        try perform(Transfer(onLine: onLine))
    }

    private func perform(_ transfer: Transfer) throws(Failure) -> Answer {
        guard Self.isReady, let handle = curl_easy_init() else {
            throw .unreachable(url: url, reason: "libcurl can't be used")
        }
        defer { curl_easy_cleanup(handle) }
        transfer.handle = handle
        var list: UnsafeMutablePointer<curl_slist>?
        for header in headers { list = curl_slist_append(list, header) }
        defer { curl_slist_free_all(list) }
        let body = body ?? []
        // Valid as long as the callback is called: until `curl_easy_perform` returns.
        let context = Unmanaged.passUnretained(transfer).toOpaque()
        let code = withExtendedLifetime(transfer) {
            body.withUnsafeBytes { bytes in
                let prepared = ccurl_prepare_request(
                    handle,
                    url,
                    method,
                    list,
                    self.body == nil ? nil : bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1),
                    bytes.count,
                    timeout.map { Int($0 / .milliseconds(1)) } ?? 0,
                    authorities,
                    verifiesCertificate ? 1 : 0,
                    { data, _, count, context in
                        guard let context else { return 0 }
                        let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
                        return transfer.receive(UnsafeRawBufferPointer(start: data, count: count)) ? count : 0
                    },
                    context
                )
                return prepared == CURLE_OK ? curl_easy_perform(handle) : prepared
            }
        }
        guard code == CURLE_OK || transfer.isEnded else {
            let reason = transfer.isTooLarge ? "the response is too large" : String(cString: curl_easy_strerror(code))
            throw .unreachable(url: url, reason: reason)
        }
        transfer.endLine()
        return Answer(status: Int(ccurl_status(handle)), body: transfer.bytes)
    }

    /// The response so far. Used by one thread.
    private final class Transfer {
        var handle: UnsafeMutableRawPointer?
        /// The body of a response that is read as a whole, or the line so far.
        private(set) var bytes: [UInt8] = []
        private(set) var isTooLarge = false
        /// Whether ``onLine`` has ended the transfer.
        private(set) var isEnded = false
        private let onLine: ((ArraySlice<UInt8>) -> Bool)?

        init(onLine: ((ArraySlice<UInt8>) -> Bool)?) {
            self.onLine = onLine
        }

        /// Returns whether to continue.
        func receive(_ data: UnsafeRawBufferPointer) -> Bool {
            guard let onLine, let handle, ccurl_status(handle) < 300 else {
                bytes += data
                isTooLarge = bytes.count > HTTPRequest.maximumBody
                return !isTooLarge
            }
            var rest = data[...]
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                bytes += rest[..<end]
                rest = rest[(end + 1)...]
                let line = bytes
                bytes = []
                guard onLine(line[...]) else {
                    isEnded = true
                    return false
                }
            }
            bytes += rest
            isTooLarge = bytes.count > HTTPRequest.maximumLine
            return !isTooLarge
        }

        /// Passes the last line on, which may have no line end.
        func endLine() {
            guard let onLine, let handle, ccurl_status(handle) < 300, !isEnded, !bytes.isEmpty else { return }
            let line = bytes
            bytes = []
            isEnded = !onLine(line[...])
        }
    }
}
