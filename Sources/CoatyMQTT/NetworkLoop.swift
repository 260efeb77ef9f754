import CMosquitto
import Coaty
import Foundation
import Logging

/// The network thread of a binding, which connects, moves bytes, and reconnects.
///
/// The session decides whether the agent is connected and whether it leaves. Used on one thread.
final class NetworkLoop {
    /// Interval of the keepalive checks.
    static let keepAliveInterval = Duration.seconds(1)
    /// Maximum number of operations that are handed over before received messages get a turn.
    static let operationBatch = 256
    /// Interval of the time limit checks while the thread is leaving.
    static let leaveInterval = Duration.milliseconds(50)
    /// The time for which a connection must be up before the next loss counts as the first one.
    static let stableAfter = Duration.seconds(5)

    /// Maximum delay before a quarantine connects again: each of its publications may end a connection.
    static let longestQuarantineDelay = Duration.seconds(1)

    /// The filter of the UNSUBSCRIBE packets that confirm publications: never subscribed, as ``BrokerCheck/filter``.
    static let confirmationFilter = "coaty/confirmation"

    let session: BindingSession
    private let options: MQTTClientOptions
    private let wakePipe: WakePipe
    private let logger: Logger
    var subscriptions: MQTTSubscriptions
    private var backoff: Backoff
    /// The code by which the broker has refused the connection.
    var refusal: Int32?
    /// The last packet, which the broker answers before the connection is closed.
    var lastUnsubscribe: Int32?
    /// Whether everything was handed over.
    private var hasTakenDisconnect = false
    /// Number of publications that were handed over and are not yet written.
    var unwritten = 0
    /// Number of publications that were written and are not yet reported to the session.
    var written = 0
    /// Number of publications that were written after the last barrier.
    var unconfirmed = 0
    /// An UNSUBSCRIBE packet whose answer shows that the broker has read the publications before it.
    var barrier: (packet: Int32, publications: Int)?
    /// Whether operations wait until the broker has read all publications.
    private var awaitsConfirmation = false
    /// Whether the socket is connected.
    private var isSocketConnected = false
    /// The address and the version of the current connection.
    private(set) var current: (address: BrokerAddress, version: MQTTVersion)?
    /// The address of the last connection that the broker has accepted.
    var former: BrokerAddress?
    var client: MosquittoClient?
    private var congestion = CongestionWatch()
    private var brokerCheck: BrokerCheck
    /// An operation that is carried out when the publications before it are written.
    private var heldBack: SessionOperation?

    init(session: BindingSession, options: MQTTClientOptions, wakePipe: WakePipe, logger: Logger) {
        self.session = session
        self.options = options
        self.wakePipe = wakePipe
        self.logger = logger
        backoff = Backoff(longest: session.isQuarantine ? Self.longestQuarantineDelay : Backoff.longest)
        brokerCheck = BrokerCheck(interval: options.checkInterval)
        subscriptions = MQTTSubscriptions(
            topics: MQTTTopics(session, options.topicDialect),
            filtersPerPacket: options.filtersPerPacket
        )
    }

    /// Runs until the session leaves.
    func run() {
        blockBrokenPipeSignal()
        var round = AddressRound()
        while !session.isLeaving {
            do throws(ConnectionError) {
                if round.isOver(now: .now) { round.begin(try addresses(), now: .now) }
                if !round.isEmpty, let address = round.next() { while try serve(address) {} }
            } catch {
                report(error)
            }
            if round.isEmpty, !session.isLeaving { rest(for: backoff.delay()) }
        }
    }

    private func report(_ error: ConnectionError) {
        if session.isConnected {
            endConnection(error)
        } else {
            session.failed(error, isFormerBroker: current?.address == former || former == nil)
        }
        client = nil
        logger.log(
            level: session.isQuarantine ? .debug : .warning,
            "not connected to the broker",
            metadata: ["broker": "\(options.address)", "reason": "\(error.reason.rawValue)", "error": "\(error)"]
        )
    }

    private func endConnection(_ error: ConnectionError?) {
        reportWritten()
        let refused = subscriptions.lost(isWriting: unwritten > 0, isLeaving: session.isLeaving, now: .now)
        for filter in refused {
            logger.error(
                "subscription refused: the broker closes the connection because of it",
                metadata: ["topic filter": "\(filter.prefix(200))"]
            )
        }
        let isCause = client?.disconnectReason.map(DisconnectReason.mayBeAboutPublication) ?? true
        session.lost(error, byPublication: error?.reason == .closed && isCause)
    }

    /// Blocks SIGPIPE on this thread: libmosquitto uses write(2), which raises it if the broker has disconnected.
    private func blockBrokenPipeSignal() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Returns the addresses to try in turn; empty if the thread must end.
    private func addresses() throws(ConnectionError) -> [BrokerAddress] {
        guard options.shouldTryMDNSDiscovery else {
            let brokers =
                [MQTTClientOptions.BrokerAddress(host: options.host, port: options.port)] + options.fallbackBrokers
            let found = brokers.map { BrokerAddress.resolve($0.host, $0.port, lookUp: options.lookUp) }
            let unknown = zip(brokers, found).filter(\.1.isEmpty).map(\.0.host)
            let error = ConnectionError(
                .hostNotFound,
                "the broker's name can't be resolved: \(unknown.joined(separator: ", "))"
            )
            if unknown.count == brokers.count { throw error }
            // The other addresses are tried.
            if !unknown.isEmpty { report(error) }
            return found.flatMap(\.self)
        }
        #if os(Linux)
            let discovery = BrokerDiscovery(limit: options.mdnsDiscoveryTimeout, wakePipe: wakePipe) { [session] in
                session.isLeaving
            }
            guard let broker = try discovery.findBroker() else { return [] }
            logger.info(
                "mDNS has found a broker",
                metadata: [
                    "broker": "\(options.tls == nil ? "mqtt" : "mqtts")://\(broker)", "name": "\(broker.service)",
                ]
            )
            return [BrokerAddress(host: broker.address, port: broker.port)]
        #else
            throw ConnectionError(.noBrokerFound, "brokers can be discovered on Linux only")
        #endif
    }

    // MARK: - One connection

    /// Connects, and moves bytes until the connection is lost or closed.
    ///
    /// - Returns: whether to try again at once, with another version of the protocol.
    private func serve(_ address: BrokerAddress) throws(ConnectionError) -> Bool {
        let version = options.version == .auto ? VersionMemory.shared.version(for: address, now: .now) : options.version
        current = (address, version)
        (refusal, lastUnsubscribe, unwritten, written, isSocketConnected) = (nil, nil, 0, 0, false)
        (hasTakenDisconnect, heldBack) = (false, nil)
        (unconfirmed, barrier, awaitsConfirmation) = (0, nil, false)
        congestion = CongestionWatch()
        brokerCheck = BrokerCheck(interval: options.checkInterval)
        try options.tls?.checkFiles()
        var options = options
        if let password = try options.readPassword() { options.password = password }
        do throws(MosquittoError) {
            let client = try MosquittoClient(
                clientId: session.clientId,
                version: version,
                will: session.farewell.flatMap { farewell in
                    guard case .event(let address) = farewell.destination else { return nil }
                    return (MQTTTopic.topic(of: address), farewell.payload)
                },
                options: options,
                delegate: self
            )
            self.client = client
            try client.connect(to: address)
            try move(client, address)
            // The client has closed the socket.
            if client.disconnectReason != nil, !session.isLeaving {
                throw MosquittoError(code: Int32(MOSQ_ERR_CONN_LOST.rawValue), errno: 0)
            }
            if session.isConnected { endConnection(nil) }
            self.client = nil
            return false
        } catch {
            if !session.isConnected, noteVersion(versionOutcome(of: error)), !session.isLeaving {
                client = nil
                return true
            }
            throw connectionError(error, address)
        }
    }

    /// - Returns: whether to try again at once, with another version.
    @discardableResult
    func noteVersion(_ outcome: VersionChoice.Outcome) -> Bool {
        guard options.version == .auto, let (address, version) = current else { return false }
        return VersionMemory.shared.note(outcome, with: version, for: address, now: .now)
    }

    private func versionOutcome(of error: MosquittoError) -> VersionChoice.Outcome {
        switch refusal {
        case 1, 0x84: return .refusedVersion
        case .some: return .failed
        case nil: break
        }
        guard isSocketConnected, client?.diagnosis.error == nil else { return .failed }
        switch error.code {
        // A CONNACK of MQTT 3.1.1 has no properties.
        case MOSQ_ERR_PROTOCOL.rawValue, MOSQ_ERR_MALFORMED_PACKET.rawValue: return .refusedVersion
        case MOSQ_ERR_CONN_LOST.rawValue, MOSQ_ERR_NO_CONN.rawValue: return .closed
        case MOSQ_ERR_ERRNO.rawValue where [ECONNRESET, EPIPE].contains(error.errno): return .closed
        default: return .failed
        }
    }

    /// Records that the broker has accepted the version, and logs what it has stated.
    func logConnection(_ properties: ConnectionProperties) {
        var metadata: Logger.Metadata = ["version": "\(properties.protocolVersion ?? "")"]
        if let size = properties.maximumPacketSize { metadata["maximum packet size"] = "\(size)" }
        if let seconds = properties.keepAlive { metadata["keepalive"] = "\(seconds)" }
        if !properties.isRetainAvailable { metadata["retained messages"] = "not kept" }
        if !properties.areWildcardsAvailable { metadata["wildcards"] = "refused" }
        logger.debug("the broker has accepted the connection", metadata: metadata)
    }

    private func move(_ client: MosquittoClient, _ address: BrokerAddress) throws(MosquittoError) {
        let start = ContinuousClock.now
        var lastKeepAlive = start
        var leaveDeadline: ContinuousClock.Instant?
        while let socket = client.socket {
            let now = ContinuousClock.now
            let isConnected = session.isConnected
            if isConnected, now > start + Self.stableAfter { backoff.reset() }
            if session.isLeaving {
                let deadline = leaveDeadline ?? now + MQTTBinding.leaveTimeout
                leaveDeadline = deadline
                if !isConnected { return }
                if now > deadline {
                    // A broker that is only slow may still read it. If the farewell was not handed over, the broker
                    // must publish the last will.
                    if hasTakenDisconnect { client.disconnect() }
                    return
                }
            } else if !isConnected, now > start + options.connectTimeout {
                throw MosquittoError(code: Int32(MOSQ_ERR_ERRNO.rawValue), errno: ETIMEDOUT)
            }
            if now > lastKeepAlive + Self.keepAliveInterval {
                lastKeepAlive = now
                try client.keepAlive()
                subscriptions.retry(now: now)
                if isConnected, !hasTakenDisconnect {
                    if !client.wantsToWrite { try unsubscribe(subscriptions.takeEnded(), client) }
                    try checkBroker(client, ReceiveBuffer(socket: socket), now)
                    if unconfirmed > 0 { _ = try confirm(client) }
                }
            }
            var isDone = try carryOutOperations(client)
            if isDone {
                wakePipe.prepareToSleep()
                isDone = try carryOutOperations(client)
            }
            let events = wait(for: socket, client, isConnected: isConnected, mayRest: isDone)
            if isConnected { watchCongestion(ReceiveBuffer(socket: socket), events) }
            try handle(events, of: socket, client)
        }
    }

    private func checkBroker(
        _ client: MosquittoClient,
        _ buffer: ReceiveBuffer,
        _ now: ContinuousClock.Instant
    ) throws(MosquittoError) {
        // Until then, a broker may pause for longer (`MQTTSubscriptions.stallTime`).
        guard options.checkInterval > .zero, !subscriptions.isAsking, let progress = buffer.progress else { return }
        switch brokerCheck.step(progress, now: now) {
        case .nothing: break
        case .ask:
            guard try writePublications(client) else { return brokerCheck.blocked(progress, now: now) }
            _ = try unsubscribe([BrokerCheck.filter], client)
            let end = (buffer.progress ?? progress).acknowledged + buffer.unacknowledged
            brokerCheck.asked(through: end, progress, now: now)
        case .lost: throw MosquittoError(code: Int32(MOSQ_ERR_KEEPALIVE.rawValue), errno: 0)
        }
    }

    private func handle(_ events: Int16, of socket: Int32, _ client: MosquittoClient) throws(MosquittoError) {
        guard events != 0 else { return }
        if !isSocketConnected {
            var (code, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
            if getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &size) == 0, code != 0 {
                throw MosquittoError(code: Int32(MOSQ_ERR_ERRNO.rawValue), errno: code)
            }
            // With TLS, libmosquitto writes at once. On this machine, where nobody listens, this has taken the error. If the
            // broker had accepted the connection, the kernel would have counted its beginning as acknowledged.
            if events & Int16(POLLHUP) != 0, ReceiveBuffer(socket: socket).progress?.acknowledged == 0 {
                throw MosquittoError(code: Int32(MOSQ_ERR_ERRNO.rawValue), errno: ECONNREFUSED)
            }
            isSocketConnected = true
            // Begins the TLS handshake.
            if options.tls != nil { try client.read() }
            return try client.write()
        }
        defer { reportWritten() }
        if events & Int16(POLLOUT) != 0 { try client.write() }
        if events & ~Int16(POLLOUT) != 0 {
            try client.read()
            // The TLS handshake may have finished, and CONNECT is queued.
            if !session.isConnected, client.socket != nil { try client.write() }
        }
        if refusal != nil { throw MosquittoError(code: Int32(MOSQ_ERR_CONN_REFUSED.rawValue), errno: 0) }
    }

    /// Reports if the broker may have dropped messages. Call it before reading.
    private func watchCongestion(_ buffer: ReceiveBuffer, _ events: Int16) {
        let now = ContinuousClock.now
        if events & Int16(POLLIN) != 0 {
            let isFull = buffer.isFull
            congestion.note(isFull: isFull, idle: isFull ? buffer.idle : .zero, now: now)
        }
        if congestion.takeLoss(now: now) { session.mayHaveMissed() }
    }

    /// Hands over queued operations, as fast as the socket accepts them: operations that stay in the outbox are kept
    /// when the connection is lost.
    ///
    /// - Returns: whether nothing is left to hand over now.
    private func carryOutOperations(_ client: MosquittoClient) throws(MosquittoError) -> Bool {
        guard session.isConnected else { return true }
        // Several packets leave in one segment: most of the time of a small packet is spent in the kernels of both ends.
        var isCorked = false
        defer {
            if isCorked { client.setCorked(false) }
            reportWritten()
        }
        for _ in 0..<Self.operationBatch {
            guard !client.isBlocked, client.socket != nil else { return true }
            if subscriptions.hasQueued, try !writePublications(client) { return true }
            if try sendSubscriptions(client) { continue }
            guard try mayContinue(client), session.isLeaving || !subscriptions.holdsBack(now: .now),
                let operation = heldBack ?? session.nextOperation()
            else {
                try client.write()
                return true
            }
            heldBack = nil
            if !isCorked, !client.isQueued(operation), session.hasOperations {
                isCorked = true
                client.setCorked(true)
            }
            try carryOut(operation, client)
        }
        try client.write()
        return false
    }

    private func carryOut(_ operation: SessionOperation, _ client: MosquittoClient) throws(MosquittoError) {
        switch operation {
        case .subscribe(let requests): report(subscriptions.add(requests))
        case .unsubscribe(let selector):
            if !subscriptions.collects(selector), try !writePublications(client) { return heldBack = operation }
            let (commands, answers) = subscriptions.remove(selector)
            report(answers)
            try unsubscribe(commands, client)
        case .publish(let publication):
            guard publication.isWrittenAlone, !session.isLeaving else { return try publish(publication, client) }
            awaitsConfirmation = true
            // First the others, so that the broker can close the connection only because of this one.
            guard try confirm(client) else { return heldBack = operation }
            try publish(publication, client)
            awaitsConfirmation = true
        case .disconnect:
            guard try writePublications(client) else { return heldBack = operation }
            hasTakenDisconnect = true
            for case .unsubscribe(let filters) in subscriptions.removeAll() {
                lastUnsubscribe = try unsubscribe(filters, client)
            }
            if lastUnsubscribe == nil { client.disconnect() }
        }
    }

    /// Returns whether the next operation may be carried out.
    private func mayContinue(_ client: MosquittoClient) throws(MosquittoError) -> Bool {
        guard awaitsConfirmation, !session.isLeaving else { return true }
        return try confirm(client)
    }

    /// Lets the broker confirm all publications that were written.
    ///
    /// - Returns: whether all are confirmed.
    private func confirm(_ client: MosquittoClient) throws(MosquittoError) -> Bool {
        guard barrier == nil, try writePublications(client) else { return false }
        reportWritten()
        guard unconfirmed > 0 else {
            awaitsConfirmation = false
            return true
        }
        if let packet = try unsubscribe([Self.confirmationFilter], client) {
            barrier = (packet, unconfirmed)
            unconfirmed = 0
        }
        return false
    }

    /// Writes the queued publications, so that another packet can follow.
    ///
    /// - Returns: whether the socket has accepted all bytes.
    private func writePublications(_ client: MosquittoClient) throws(MosquittoError) -> Bool {
        try client.write()
        return !client.wantsToWrite
    }

    /// - Returns: whether a packet was sent.
    private func sendSubscriptions(_ client: MosquittoClient) throws(MosquittoError) -> Bool {
        guard let packet = subscriptions.nextPacket(now: .now) else { return false }
        do throws(MosquittoError) {
            let id = try client.subscribe(packet.filters)
            // All identifiers were used since: a broker that leaves so many packets unanswered does not answer at all.
            guard subscriptions.sent(id, keys: packet.keys, now: .now) else {
                throw MosquittoError(code: Int32(MOSQ_ERR_KEEPALIVE.rawValue), errno: 0)
            }
        } catch {
            guard error.isOperationAtFault else { throw error }
            logger.error("not subscribed", metadata: ["error": "\(connectionError(error, nil))"])
            report(subscriptions.refuse(packet.keys))
        }
        return true
    }

    private func unsubscribe(
        _ commands: [MQTTSubscriptions.Command],
        _ client: MosquittoClient
    ) throws(MosquittoError) {
        for case .unsubscribe(let filters) in commands { _ = try unsubscribe(filters, client) }
    }

    private func unsubscribe(_ filters: [String], _ client: MosquittoClient) throws(MosquittoError) -> Int32? {
        do throws(MosquittoError) {
            return try client.unsubscribe(filters)
        } catch {
            guard error.isOperationAtFault else { throw error }
            logger.error("not unsubscribed", metadata: ["error": "\(connectionError(error, nil))"])
            return nil
        }
    }

    private func publish(_ publication: Publication, _ client: MosquittoClient) throws(MosquittoError) {
        let (topic, isRetained) =
            switch publication.destination {
            case .event(let address): (MQTTTopic.topic(of: address), false)
            case .ioRoute(let route): (route, false)
            case .raw(let topic, let isRetained): (topic, isRetained)
            }
        unwritten += 1
        do throws(MosquittoError) {
            try client.publish(topic, publication.payload, isRetained: isRetained)
        } catch {
            // If the connection is lost, it was lost before this.
            unwritten -= 1
            guard error.isOperationAtFault else { throw error }
            // The session removes its oldest publication, which is this one when all others are written.
            guard try writePublications(client) else { return heldBack = .publish(publication) }
            reportWritten()
            session.publicationRefused()
            logger.error("not published", metadata: ["topic": "\(topic)", "error": "\(connectionError(error, nil))"])
        }
        try client.writeIfFull()
    }

    func report(_ answers: [MQTTSubscriptions.Answer]) {
        for answer in answers { session.answer(answer.request, isGranted: answer.isGranted) }
    }

    // MARK: - Waiting

    /// Waits until the socket is ready, another thread wakes this one, or the keepalive must be checked.
    ///
    /// - Parameter mayRest: whether to wait at all.
    private func wait(for socket: Int32, _ client: MosquittoClient, isConnected: Bool, mayRest: Bool) -> Int16 {
        let timeout = !mayRest ? .zero : session.isLeaving ? Self.leaveInterval : Self.keepAliveInterval
        // During the TLS handshake, the CONNECT packet is queued, but not because of the socket.
        let isHandshake = options.tls != nil && isSocketConnected && !isConnected
        let waitsToWrite = !isSocketConnected || client.wantsToWrite && !isHandshake
        return withUnsafeTemporaryAllocation(of: pollfd.self, capacity: 2) { descriptors in
            let events = (client.wantsToRead ? Int16(POLLIN) : 0) | (waitsToWrite ? Int16(POLLOUT) : 0)
            descriptors.initializeElement(at: 0, to: pollfd(fd: socket, events: events, revents: 0))
            descriptors.initializeElement(at: 1, to: pollfd(fd: wakePipe.readEnd, events: Int16(POLLIN), revents: 0))
            let start = ContinuousClock.now
            poll(descriptors.baseAddress, nfds_t(descriptors.count), Int32(timeout / .milliseconds(1)))
            congestion.notePause(of: .now - start)
            wakePipe.didWake(isReadable: descriptors[1].revents != 0)
            return descriptors[0].revents
        }
    }

    /// Waits before the next attempt; leaving ends the wait.
    private func rest(for duration: Duration) {
        let end = ContinuousClock.now + duration
        while !session.isLeaving, .now < end {
            wakePipe.prepareToSleep()
            if session.isLeaving { return }
            var descriptor = pollfd(fd: wakePipe.readEnd, events: Int16(POLLIN), revents: 0)
            let left = end - ContinuousClock.now
            poll(&descriptor, 1, Int32(max(left / .milliseconds(1), 1)))
            wakePipe.didWake(isReadable: descriptor.revents != 0)
        }
    }

    private func connectionError(_ error: MosquittoError, _ address: BrokerAddress?) -> ConnectionError {
        ConnectionError(
            error,
            address: address?.description ?? options.address,
            refusal: refusal,
            wasConnected: session.isConnected,
            isSocketConnected: isSocketConnected,
            handshake: options.tls == nil ? nil : client?.handshake ?? cmosq_handshake(),
            diagnosis: client?.diagnosis,
            disconnectReason: client?.disconnectReason
        )
    }
}
