import Coaty
import Foundation
import Logging

/// What the network thread does: connects, moves bytes, connects again.
struct NetworkLoop {
    /// How long the broker may take to accept a connection.
    static let acceptTimeout = Duration.seconds(10)
    /// How often the keepalive is looked after.
    static let keepAliveInterval = Duration.seconds(1)
    /// How many operations are handed over before what has come in gets its turn.
    static let operationBatch = 256
    /// How often a thread that is leaving looks whether its time is over.
    static let leaveInterval = Duration.milliseconds(50)
    /// How long a link must hold before the next loss counts as the first one.
    static let stableAfter = Duration.seconds(5)

    private let link: Link
    private let options: MQTTClientOptions
    private let membership: Membership
    private let logger: Logger
    private var backoff = Backoff()

    init(
        link: Link,
        options: MQTTClientOptions,
        membership: Membership,
        logger: Logger
    ) {
        self.link = link
        self.options = options
        self.membership = membership
        self.logger = logger
    }

    mutating func run() {
        blockBrokenPipeSignal()
        while !membership.isLeaving {
            do throws(MQTTLinkError) {
                try connectAndServe()
            } catch {
                logger.warning(
                    "no link to the broker",
                    metadata: ["broker": "\(options.address)", "error": "\(error)"]
                )
            }
            if !membership.isLeaving { rest(for: backoff.delay()) }
        }
    }

    /// libmosquitto writes with write(2), which raises SIGPIPE where the broker has gone.
    private func blockBrokenPipeSignal() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// The options to connect with, of which the broker is known; nil where the thread shall end.
    private func target() throws(MQTTLinkError) -> MQTTClientOptions? {
        guard options.shouldTryMDNSDiscovery else { return options }
        #if os(Linux)
            let discovery = BrokerDiscovery(limit: options.mdnsDiscoveryTimeout, membership: membership)
            guard let broker = try discovery.findBroker() else { return nil }
            var found = options
            found.shouldTryMDNSDiscovery = false
            (found.host, found.port) = (broker.address, broker.port)
            logger.info(
                "mDNS has found a broker",
                metadata: ["broker": "\(found.address)", "name": "\(broker.service)"]
            )
            return found
        #else
            throw .discovery("brokers can be discovered on Linux only")
        #endif
    }

    private mutating func connectAndServe() throws(MQTTLinkError) {
        guard let options = try target() else { return }
        let client = try MosquittoClient(link: link, options: options, logger: logger)
        try client.connect(to: options)
        defer { if client.isOpen { link.closed() } }
        let start = ContinuousClock.now
        var lastKeepAlive = start
        var leaveDeadline: ContinuousClock.Instant?
        while let socket = client.socket {
            let now = ContinuousClock.now
            if client.isOpen, now > start + Self.stableAfter { backoff.reset() }
            if membership.isLeaving {
                let deadline = leaveDeadline ?? now + MQTTBinding.leaveTimeout
                leaveDeadline = deadline
                if !client.isOpen { return }
                if now > deadline {
                    // A broker that is only slow may still read it.
                    if client.isLeaving { client.disconnect() }
                    return
                }
            } else if !client.isOpen, now > start + Self.acceptTimeout {
                throw .noAnswer
            }
            if now > lastKeepAlive + Self.keepAliveInterval {
                lastKeepAlive = now
                try client.keepAlive()
            }
            var isDone = try carryOutOperations(client)
            if isDone {
                membership.wakePipe.prepareToSleep()
                isDone = try carryOutOperations(client)
            }
            let events = wait(for: socket, toWrite: client.wantsToWrite, mayRest: isDone)
            if events & Int16(POLLOUT) != 0 { try client.write() }
            if events & ~Int16(POLLOUT) != 0 { try client.read() }
        }
    }

    /// Hands over what waits, as fast as the socket takes it: what stays in the outbox is kept when the link is lost.
    ///
    /// - Returns: whether there is nothing more to hand over by now.
    private func carryOutOperations(_ client: MosquittoClient) throws(MQTTLinkError) -> Bool {
        guard client.isOpen else { return true }
        for _ in 0..<Self.operationBatch {
            guard !client.wantsToWrite, !client.isLeaving, client.socket != nil, let operation = link.nextOperation()
            else { return true }
            do throws(MQTTLinkError) {
                try client.carryOut(operation)
            } catch {
                guard error.isOperationAtFault else { throw error }
                switch operation {
                case .publish(let publication):
                    link.publicationRefused()
                    logger.error("not published", metadata: ["topic": "\(publication.topic)", "error": "\(error)"])
                case .subscribe(let filters, let ticket):
                    logger.error("not subscribed", metadata: ["error": "\(error)"])
                    link.subscribed(ticket, refused: filters)
                case .unsubscribe, .disconnect:
                    logger.error("not unsubscribed", metadata: ["error": "\(error)"])
                }
            }
        }
        return false
    }

    /// Sleeps until the socket or somebody else has something to do, or the keepalive wants a look.
    ///
    /// - Parameter mayRest: whether to sleep at all.
    private func wait(for socket: Int32, toWrite: Bool, mayRest: Bool) -> Int16 {
        let timeout = !mayRest ? .zero : membership.isLeaving ? Self.leaveInterval : Self.keepAliveInterval
        return withUnsafeTemporaryAllocation(of: pollfd.self, capacity: 2) { descriptors in
            let events = Int16(POLLIN) | (toWrite ? Int16(POLLOUT) : 0)
            descriptors.initializeElement(at: 0, to: pollfd(fd: socket, events: events, revents: 0))
            let wakeEnd = membership.wakePipe.readEnd
            descriptors.initializeElement(at: 1, to: pollfd(fd: wakeEnd, events: Int16(POLLIN), revents: 0))
            poll(descriptors.baseAddress, nfds_t(descriptors.count), Int32(timeout / .milliseconds(1)))
            membership.wakePipe.didWake(isReadable: descriptors[1].revents != 0)
            return descriptors[0].revents
        }
    }

    /// Waits before the next attempt; leaving cuts it short.
    private func rest(for duration: Duration) {
        let end = ContinuousClock.now + duration
        while !membership.isLeaving, .now < end {
            membership.wakePipe.prepareToSleep()
            if membership.isLeaving { return }
            var descriptor = pollfd(fd: membership.wakePipe.readEnd, events: Int16(POLLIN), revents: 0)
            let left = end - ContinuousClock.now
            poll(&descriptor, 1, Int32(max(left / .milliseconds(1), 1)))
            membership.wakePipe.didWake(isReadable: descriptor.revents != 0)
        }
    }
}
