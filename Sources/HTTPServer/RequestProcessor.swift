import CMicroHTTPD
import Glibc
import Synchronization

/// Performs the work of libmicrohttpd's callbacks, on its threads: checks heads, collects bodies, calls handlers,
/// queues responses.
///
/// libmicrohttpd calls `process` once with the head, then for each part of the body, then without a part until there is
/// a response. A response that is queued in the first call ends the connection.
final class RequestProcessor: Sendable {
    let counters = Counters()
    let times: RequestTimes
    let openAnswers = OpenAnswers()
    let deadlines: RequestDeadlines
    /// Nil if the process has no descriptors left.
    let watch: SocketWatch?
    let isDraining = Atomic<Bool>(false)
    /// The contexts of connections that libmicrohttpd does not yet serve, by descriptor. If it closes a connection
    /// earlier, the entry stays until the next connection with the number replaces it.
    let contexts = Mutex<[Int32: any Sendable & AnyObject]>([:])
    let refusals: Refusals

    private static let idField = "X-Request-Id"
    /// Maximum number of bytes of a stream that the kernel buffers beyond those already sent.
    private static let unsentBytes: CInt = 128 * 1024

    private let configuration: HTTPServer.Configuration
    /// The value of `Keep-Alive`.
    private let keepAlive: String
    private let routes: RouteTree
    private let reports: RequestReports?
    private let admission: (@Sendable (borrowing HTTPRequestHead) -> HTTPAdmission)?
    /// The response to `OPTIONS *`, which is about the server as a whole (RFC 9110, section 9.3.7).
    private let serverOptions: HTTPResponse

    init(configuration: HTTPServer.Configuration, router: Router) {
        self.configuration = configuration
        keepAlive = "timeout=\(configuration.announcedKeepAlive)"
        reports = configuration.reports
        deadlines = RequestDeadlines(configuration)
        watch = SocketWatch(timeout: max(1, configuration.connectionTimeout))
        refusals = Refusals(configuration)
        routes = RouteTree(router, refusals: refusals)
        times = RequestTimes(templates: routes.pathTemplates)
        admission = router.admission
        let methods = HTTPMethod.allCases.map(\.rawValue).joined(separator: ", ")
        serverOptions = HTTPResponse(status: 204, headers: [("Allow", methods)])
    }

    /// Called when a connection is opened. Stores its watched connection in `context`.
    func open(_ connection: OpaquePointer, context: inout UnsafeMutableRawPointer?) {
        let peer = withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(CMHD_PEER_SIZE)) { buffer in
            guard let start = buffer.baseAddress else { return "" }
            cmhd_peer(connection, start)
            return String(cString: start)
        }
        let descriptor = cmhd_descriptor(connection)
        let adopted = contexts.withLock { $0.removeValue(forKey: descriptor) }
        context = Unmanaged.passRetained(deadlines.add(descriptor, peer: peer, context: adopted)).toOpaque()
    }

    /// Called when a connection has ended; its descriptor is still open.
    func close(context: inout UnsafeMutableRawPointer?) {
        guard let watched = context else {
            counters.dismiss()
            return
        }
        context = nil
        let connection = Unmanaged<RequestDeadlines.Connection>.fromOpaque(watched).takeRetainedValue()
        // A cut connection is no longer counted.
        if !deadlines.remove(connection) { counters.dismiss() }
    }

    /// Handles the first call for a request. Stores its exchange in `context`.
    func begin(
        _ connection: OpaquePointer,
        target: UnsafePointer<CChar>,
        method name: UnsafePointer<CChar>,
        version: UnsafePointer<CChar>,
        context exchangeContext: inout UnsafeMutableRawPointer?
    ) -> MHD_Result {
        guard let socketContext = cmhd_socket_context(connection) else { return .NO }
        let watched = Unmanaged<RequestDeadlines.Connection>.fromOpaque(socketContext).takeUnretainedValue()
        watched.requestBegins()
        counters.requests.add(1, ordering: .relaxed)
        let method = HTTPMethod(name: name)
        let head = RequestHead(connection, version: version)
        var parameters = PathParameters(names: [], values: [])
        var answerHeaders: [(name: String, value: String)] = []
        var context: (any Sendable & AnyObject)?
        var budget: (any HTTPServer.ByteBudget)?
        var endpoint: Int?
        let identity = reports.flatMap { head.identity(isRequired: $0.isComplete) }
        var refusal = refusalOfUnreadable(connection, head)
        let phase: Exchange.Phase
        if let refusal {
            phase = .discarding(refusal)
        } else {
            let match = head.hasMalformedQuery ? .answered(refusals.malformedTarget) : match(method, target)
            var outcome = match.outcome
            endpoint = match.endpoint
            let decision = RequestIdentity.use(identity) { admit(connection, watched, method, target, match) }
            switch decision {
            case .admit(let headers, let admitted, let granted):
                answerHeaders = headers
                context = admitted
                budget = granted
                refusal = refusalAtOnce(head, match)
                if let refusal { outcome = .answered(refusal) }
            case .answer(let response, let answered):
                context = answered
                outcome = .answered(response)
            }
            switch outcome {
            case .found(let handler, let found):
                phase = .reading(handler)
                parameters = found
            case .answered(let response):
                phase = .discarding(response)
                // A client that waits for permission to send its body gets the refusal immediately, and a body that is
                // too large to be awaited is discarded after it.
                if head.expectsContinue || isTooLarge(head) { refusal = response }
            }
        }
        let exchange = Exchange(
            phase: phase,
            endpoint: endpoint,
            connection: watched,
            method: method,
            parameters: parameters,
            queryItems: head.queryItems,
            answerHeaders: answerHeaders,
            context: context,
            budget: budget,
            identity: identity,
            declaredLength: head.contentLength,
            understandsChunks: head.isHTTP11,
            // libmicrohttpd closes the connection after a response that does not wait for the body.
            keepsConnection: head.isHTTP11 && !head.wantsClose && refusal == nil
        )
        exchangeContext = Unmanaged.passRetained(exchange).toOpaque()
        guard let refusal else { return .YES }
        if head.hasReadableBody {
            // Many clients that ask for permission send the body before they have it, for example Go's.
            if head.expectsContinue { cmhd_forget_expectation(connection) }
            return answerEarly(refusal, connection, exchange)
        }
        counters.refused.add(1, ordering: .relaxed)
        return queue(refusal, connection, exchange)
    }

    /// Returns the refusal of a head that can't be trusted; the connection ends with such an answer.
    private func refusalOfUnreadable(_ connection: OpaquePointer, _ head: borrowing RequestHead) -> HTTPResponse? {
        if cmhd_header_size(connection) > configuration.maximumHeaderSize { return refusals.headerTooLarge }
        if head.isAmbiguous { return refusals.malformedRequest }
        return head.hasUnknownTransferCoding ? refusals.unknownTransferCoding : nil
    }

    /// Returns the refusal of an admitted request before its body is read; the connection ends with such an answer.
    private func refusalAtOnce(_ head: borrowing RequestHead, _ match: RouteTree.Match) -> HTTPResponse? {
        if isDraining.load(ordering: .relaxed) { return refusals.draining }
        if head.wantsWebSocket {
            // A new connection does not help if the path is wrong.
            if match.endpoint == nil, case .answered(let response) = match.outcome { return response }
            return refusals.misdirected
        }
        if case .found = match.outcome, isTooLarge(head) { return refusals.contentTooLarge }
        return nil
    }

    private func isTooLarge(_ head: borrowing RequestHead) -> Bool {
        head.contentLength > UInt64(configuration.maximumBodySize)
    }

    private func admit(
        _ connection: OpaquePointer,
        _ watched: RequestDeadlines.Connection,
        _ method: HTTPMethod?,
        _ target: UnsafePointer<CChar>,
        _ match: RouteTree.Match
    ) -> HTTPAdmission {
        guard let admission else { return .admit(headers: []) }
        return admission(
            HTTPRequestHead(
                method: method,
                targetAuthority: authority(of: target).map { authority in
                    String(
                        decoding: UnsafeRawBufferPointer(start: authority, count: strcspn(authority, "/")),
                        as: UTF8.self
                    )
                },
                watched: watched,
                connection: connection,
                routes: routes,
                endpoint: match.endpoint
            )
        )
    }

    /// Returns the part of a target in absolute form after the scheme.
    private func authority(of target: UnsafePointer<CChar>) -> UnsafePointer<CChar>? {
        for scheme in ["http://", "https://"] where strncasecmp(target, scheme, scheme.utf8.count) == 0 {
            return target.advanced(by: scheme.utf8.count)
        }
        return nil
    }

    /// Returns the match of a target in origin form, absolute form or asterisk form (RFC 9112, section 3.2).
    private func match(_ method: HTTPMethod?, _ target: UnsafePointer<CChar>) -> RouteTree.Match {
        if method == .options, strcmp(target, "*") == 0 { return .answered(serverOptions) }
        var path = target
        if let authority = authority(of: target) {
            path = authority.advanced(by: strcspn(authority, "/"))
            // An empty path is equivalent to `/` (RFC 9110, section 4.2.3).
            if path.pointee == 0 { return "/".withCString { match(method, path: $0) } }
        }
        return match(method, path: path)
    }

    private func match(_ method: HTTPMethod?, path: UnsafePointer<CChar>) -> RouteTree.Match {
        let length = strlen(path)
        return path.withMemoryRebound(to: UInt8.self, capacity: length) {
            routes.match(method, UnsafeBufferPointer(start: $0, count: length))
        }
    }

    /// Handles a part of the body.
    func receive(_ bytes: UnsafeRawBufferPointer, _ connection: OpaquePointer, _ exchange: Exchange) -> MHD_Result {
        if case .lingering = exchange.phase { return exchange.discard(bytes.count) ? .YES : .NO }
        let outcome = exchange.receive(bytes, limit: configuration.maximumBodySize)
        if case .discarding(let response) = exchange.phase {
            let isLate = RequestTimes.now() - exchange.begin >= configuration.discardTimeout * 1_000_000_000
            guard outcome == .tooLong || isLate else { return .YES }
            return answerEarly(response, connection, exchange) == .YES && !isLate ? .YES : .NO
        }
        return switch outcome {
        case .taken: .YES
        // A chunked body that has become too large.
        case .tooLong: answerEarly(refusals.contentTooLarge, connection, exchange)
        case .overBudget: answerEarly(refusals.overBudget, connection, exchange)
        }
    }

    /// Answers a request whose body has not arrived completely. The connection ends when the client has sent it.
    private func answerEarly(
        _ response: HTTPResponse,
        _ connection: OpaquePointer,
        _ exchange: Exchange
    ) -> MHD_Result {
        if response.status >= 400 { counters.refused.add(1, ordering: .relaxed) }
        begin(exchange)
        let hasBody = exchange.method != .head
        exchange.status = response.status
        exchange.responseBytes = hasBody ? response.bodySize : 0
        let headers = answerHeaders(of: exchange, status: response.status)
        let message = response.lastMessage(adding: headers, hasBody: hasBody)
        let isSent = Lingering.send(message, on: cmhd_descriptor(connection))
        exchange.linger(Lingering(configuration))
        exchange.connection.lingeringBegins(seconds: configuration.discardTimeout)
        reportAnswer(exchange)
        return isSent ? .YES : .NO
    }

    /// Answers a request that is complete, or whose connection was resumed.
    func answer(
        _ connection: OpaquePointer,
        target: UnsafePointer<CChar>,
        _ exchange: Exchange
    ) -> MHD_Result {
        switch exchange.phase {
        case .reading(let handler):
            return RequestIdentity.use(exchange.identity) { answer(connection, target: target, exchange, handler) }
        case .discarding(let response):
            if response.status >= 400 { counters.refused.add(1, ordering: .relaxed) }
            return queue(response, connection, exchange)
        case .waiting(let pending):
            return answer(waitedFor: pending, connection, exchange)
        case .lingering:
            // The body is complete. This closes the connection.
            return .NO
        case .answered, .streaming:
            return .YES
        }
    }

    private func answer(
        _ connection: OpaquePointer,
        target: UnsafePointer<CChar>,
        _ exchange: Exchange,
        _ handler: HTTPHandler
    ) -> MHD_Result {
        let reply = exchange.withBody { body in
            handler(
                HTTPRequest(
                    method: exchange.method,
                    parameters: exchange.parameters,
                    queryItems: exchange.queryItems,
                    body: body,
                    context: exchange.context,
                    connection: connection,
                    target: target
                )
            )
        }
        return switch reply {
        case .response(let response): queue(response, connection, exchange)
        case .later(let start): suspend(connection, exchange, start)
        case .stream(let status, let headers, let start):
            stream(connection, exchange, status, headers, isAbortedAtStop: false, start)
        }
    }

    private func suspend(
        _ connection: OpaquePointer,
        _ exchange: Exchange,
        _ start: @Sendable (PendingResponse) -> Void
    ) -> MHD_Result {
        let pending = PendingResponse(connection: connection)
        guard openAnswers.add(pending, limit: configuration.maximumPending) else {
            return refuseMore(connection, exchange)
        }
        begin(exchange)
        exchange.phase = .waiting(pending)
        // Since the registration, the server may have stopped and therefore answered.
        guard pending.suspend() else { return answer(waitedFor: pending, connection, exchange) }
        start(pending)
        if pending.isWaiting { watchDeparture(connection, exchange) { pending.depart() } }
        return .YES
    }

    private func answer(
        waitedFor pending: PendingResponse,
        _ connection: OpaquePointer,
        _ exchange: Exchange
    ) -> MHD_Result {
        switch pending.take() {
        case .nothing: return .YES
        case .departed: return .NO
        case .answer(.response(let response)):
            openAnswers.remove(pending)
            return queue(response, connection, exchange)
        case .answer(.stream(let status, let headers, let start)):
            openAnswers.remove(pending)
            return stream(connection, exchange, status, headers, isAbortedAtStop: true, start)
        }
    }

    /// Calls `departed` if the client disconnects before `endWatch`.
    private func watchDeparture(
        _ connection: OpaquePointer,
        _ exchange: Exchange,
        _ departed: @escaping @Sendable () -> Void
    ) {
        exchange.watched = watch?.add(cmhd_descriptor(connection)) { _ in departed() }
    }

    private func endWatch(_ exchange: Exchange) {
        if let entry = exchange.watched.take() { watch?.remove(entry) }
    }

    private func stream(
        _ connection: OpaquePointer,
        _ exchange: Exchange,
        _ status: Int,
        _ headers: [(name: String, value: String)],
        isAbortedAtStop: Bool,
        _ start: @Sendable (HTTPStream) -> Void
    ) -> MHD_Result {
        // The stream watches the socket itself.
        endWatch(exchange)
        guard let watch else { return .NO }
        let descriptor = cmhd_descriptor(connection)
        let stream = HTTPStream(
            connection: connection,
            descriptor: descriptor,
            watch: watch,
            isChunked: exchange.understandsChunks,
            limit: configuration.streamQueueSize,
            isAbortedAtStop: isAbortedAtStop
        )
        guard openAnswers.add(stream, limit: configuration.maximumStreams) else {
            return refuseMore(connection, exchange)
        }
        begin(exchange)
        boundSocket(descriptor)
        exchange.phase = .streaming(stream)
        exchange.status = status
        times.record(
            endpoint: exchange.endpoint,
            exchange.requestMethod,
            status: status,
            nanoseconds: RequestTimes.now() - exchange.begin
        )
        var headers = headers + answerHeaders(of: exchange, status: status)
        if exchange.method == .head {
            stream.finish()
            // libmicrohttpd sends an end of the body, which a response to HEAD does not have.
            headers.append(("Connection", "close"))
        } else if exchange.keepsConnection, configuration.keepsConnections() {
            headers.append(("Keep-Alive", keepAlive))
        }
        guard let response = stream.makeResponse(headers: headers) else { return .NO }
        defer { MHD_destroy_response(response) }
        guard MHD_queue_response(connection, UInt32(status), response) == .YES else { return .NO }
        if exchange.method != .head { start(stream) }
        return .YES
    }

    /// Limits the kernel's send buffer. The server cannot drop old events among the buffered bytes, and they delay the
    /// detection of a client that has disappeared without closing. By default, Linux buffers up to 4 MiB and retries
    /// for a quarter of an hour.
    private func boundSocket(_ descriptor: Int32) {
        #if os(Linux)
            var unsentBytes = Self.unsentBytes
            var milliseconds = CInt(clamping: max(1, configuration.connectionTimeout) * 1000)
            let length = socklen_t(MemoryLayout<CInt>.size)
            setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NOTSENT_LOWAT, &unsentBytes, length)
            setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_USER_TIMEOUT, &milliseconds, length)
        #endif
    }

    private func refuseMore(_ connection: OpaquePointer, _ exchange: Exchange) -> MHD_Result {
        counters.refused.add(1, ordering: .relaxed)
        return queue(refusals.overloaded, connection, exchange)
    }

    private func queue(_ response: HTTPResponse, _ connection: OpaquePointer, _ exchange: Exchange) -> MHD_Result {
        begin(exchange)
        exchange.phase = .answered
        exchange.status = response.status
        exchange.responseBytes = exchange.method == .head ? 0 : response.bodySize
        exchange.connection.sendingBegins()
        return response.withRaw(
            adding: answerHeaders(of: exchange, status: response.status),
            keepAlive: exchange.keepsConnection ? keepAlive : nil
        ) { MHD_queue_response(connection, UInt32(response.status), $0) } ?? .NO
    }

    /// Returns the header fields that are added to an answer.
    private func answerHeaders(of exchange: Exchange, status: Int) -> [(name: String, value: String)] {
        var headers = exchange.answerHeaders
        if let reports, let id = exchange.id(forStatus: status, reports) { headers.append((Self.idField, id)) }
        if !configuration.keepsConnections() { headers.append(("Connection", "close")) }
        return headers
    }

    private func begin(_ exchange: Exchange) {
        guard !exchange.hasBegunAnswer else { return }
        exchange.hasBegunAnswer = true
        exchange.connection.answerBegins()
        openAnswers.begin()
    }

    /// Called when the request has ended: it was answered, or its connection has ended.
    func end(_ exchange: Exchange) {
        // While the descriptor is still open.
        endWatch(exchange)
        switch exchange.phase {
        case .waiting(let pending):
            pending.end()
            openAnswers.remove(pending)
        case .streaming(let stream):
            exchange.responseBytes = stream.sentBytes
            stream.close()
            openAnswers.remove(stream)
        case .reading, .discarding, .lingering, .answered: break
        }
        let nanoseconds = RequestTimes.now() - exchange.begin
        configuration.ended?(EndedRequest(nanoseconds: nanoseconds, isSlow: false, exchange: exchange, routes: routes))
        reportAnswer(exchange)
        exchange.connection.answerEnds()
    }

    /// Reports a request, once: when it has ended, or earlier when it is answered but its body is still read.
    private func reportAnswer(_ exchange: Exchange) {
        guard !exchange.hasReportedAnswer else { return }
        exchange.hasReportedAnswer = true
        let nanoseconds = RequestTimes.now() - exchange.begin
        if !exchange.isStream {
            times.record(
                endpoint: exchange.endpoint,
                exchange.requestMethod,
                status: exchange.status,
                nanoseconds: nanoseconds
            )
        }
        reports?.ended(exchange, routes, nanoseconds: nanoseconds)
        if exchange.hasBegunAnswer { openAnswers.ended() }
    }
}
