import CCurl
import Coaty

/// One HTTP request, which blocks its thread.
struct HTTPRequest {
    /// Maximum size of a response that is read as a whole, in bytes.
    private static let maximumBody = 256 << 20
    /// Maximum size of a line of a streamed response, in bytes: more than the largest event.
    private static let maximumLine = 64 << 20
    /// Maximum time without a byte of a stream, which has a heartbeat every 15 seconds. libcurl's own limit is a speed of
    /// whole bytes per second, which heartbeats do not reach.
    private static let maximumSilence = Duration.seconds(60)
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
    /// Whether a proxy of the environment is used.
    var usesProxy = true

    /// A response that was read as a whole.
    struct Answer {
        let status: Int
        let body: [UInt8]

        /// The failure: that of a problem (RFC 9457), or a response that no gateway sends.
        var failure: Failure {
            guard let json = try? JSONDocument(body).root, let problem = json.problem else {
                // Of a proxy in front of the gateway.
                if 502...504 ~= status { return .unreachable("the status of the response is \(status)") }
                return .notAGateway("the response with the status \(status) is not that of a gateway")
            }
            return .refused("\(problem) (\(status))")
        }

        /// The JSON of a successful response.
        ///
        /// - Throws: ``failure``
        func json() throws(Failure) -> JSONView {
            guard status == 200, let json = try? JSONDocument(body).root else { throw failure }
            return json
        }
    }

    /// Sends the request, and reads the whole response.
    ///
    /// - Throws: ``Failure/unreachable(_:)``, ``Failure/notAGateway(_:)``
    func answer() throws(Failure) -> Answer {
        try perform(Transfer(mediaType: nil) { _ in true })
    }

    /// Sends the request, and passes each line of a successful response of a media type on when it arrives, without its
    /// line end.
    ///
    /// - Parameter onLine: returns whether to continue.
    /// - Returns: the response, without a body if its lines were passed on.
    /// - Throws: ``Failure/unreachable(_:)``, also if the connection ends within the response;
    ///   ``Failure/notAGateway(_:)``
    func lines(of mediaType: String, _ onLine: @escaping (ArraySlice<UInt8>) -> Bool) throws(Failure) -> Answer {
        try perform(Transfer(mediaType: mediaType, onLine))
    }

    private func perform(_ transfer: Transfer) throws(Failure) -> Answer {
        guard Self.isReady, let handle = curl_easy_init() else {
            throw .unreachable("libcurl can't be used")
        }
        defer { curl_easy_cleanup(handle) }
        transfer.handle = handle
        transfer.maximumSilence = timeout == nil ? Self.maximumSilence : nil
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
                    usesProxy ? 1 : 0,
                    { data, _, count, context in
                        guard let context else { return 0 }
                        let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
                        return transfer.receive(UnsafeRawBufferPointer(start: data, count: count)) ? count : 0
                    },
                    { context, _, _, _, _ in
                        guard let context else { return 1 }
                        return Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue().isSilent ? 1 : 0
                    },
                    context
                )
                return prepared == CURLE_OK ? curl_easy_perform(handle) : prepared
            }
        }
        guard code == CURLE_OK || transfer.isEnded else {
            if transfer.isTooLarge { throw .notAGateway("\(url): the response is too large") }
            let reason = "\(url): \(String(cString: curl_easy_strerror(code)))"
            switch code {
            case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_URL_MALFORMAT:
                throw .notAGateway(reason)
            case CURLE_ABORTED_BY_CALLBACK: throw .unreachable("\(url): nothing was received for a minute")
            default: throw .unreachable(reason)
            }
        }
        transfer.endLine()
        return Answer(status: Int(ccurl_status(handle)), body: transfer.bytes)
    }

    /// The response so far. Used by one thread.
    private final class Transfer {
        var handle: UnsafeMutableRawPointer?
        /// Maximum time without a byte; nil for none.
        var maximumSilence: Duration?
        /// The body of a response that is read as a whole, or the line so far.
        private(set) var bytes: [UInt8] = []
        private(set) var isTooLarge = false
        /// Whether ``onLine`` has ended the transfer.
        private(set) var isEnded = false
        /// The media type of responses whose lines are passed on; nil if no response is.
        private let mediaType: String?
        private let onLine: (ArraySlice<UInt8>) -> Bool
        private var lastReceipt = ContinuousClock.now

        init(mediaType: String?, _ onLine: @escaping (ArraySlice<UInt8>) -> Bool) {
            self.mediaType = mediaType
            self.onLine = onLine
        }

        /// Whether nothing was received for too long.
        var isSilent: Bool { maximumSilence.map { ContinuousClock.now - lastReceipt > $0 } ?? false }

        private var hasLines: Bool {
            guard let mediaType, let handle, ccurl_status(handle) == 200, let type = ccurl_media_type(handle) else {
                return false
            }
            return String(cString: type).hasPrefix(mediaType)
        }

        /// Returns whether to continue.
        func receive(_ data: UnsafeRawBufferPointer) -> Bool {
            lastReceipt = .now
            guard hasLines else {
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
            guard hasLines, !isEnded, !bytes.isEmpty else { return }
            let line = bytes
            bytes = []
            isEnded = !onLine(line[...])
        }
    }
}

extension JSONView {
    /// The text of a problem (RFC 9457), which an error frame is too; nil if this is no problem.
    var problem: String? {
        guard let title = self["title"]?.string else { return nil }
        return self["detail"]?.string ?? title
    }
}
