#if os(Linux)
    import CAvahi
    import Foundation
    public import Logging
    import Synchronization

    /// Announces a broker by mDNS, so that agents with ``MQTTClientOptions/shouldTryMDNSDiscovery`` find it.
    ///
    /// The service is `Coaty MQTT Broker._coaty-mqtt._tcp.local`; if that name is taken, `Coaty MQTT Broker #2`, and so
    /// on. mDNS does not leave the local network.
    public final class MDNSAnnouncement: Sendable {
        private let address: ListeningAddress
        private let port: UInt16
        private let logger: Logger
        private let responder = Mutex<Responder?>(nil)

        /// Creates an announcement; nothing is sent before ``start()``.
        ///
        /// - Parameters:
        ///   - host: the numeric address that the broker listens on, IPv6 without brackets. `0.0.0.0` and `::` announce
        ///     all current and future addresses of their family on this machine.
        ///   - port: the broker's port.
        ///   - logger: the log.
        /// - Throws: ``MDNSError`` if `host` is a name, or an address that no other machine can reach.
        public init(host: String, port: UInt16, logger: Logger = Logger(label: "coaty.mdns")) throws(MDNSError) {
            address = try ListeningAddress(host)
            self.port = port
            self.logger = logger
        }

        /// Starts to announce the broker, which takes about two seconds.
        ///
        /// - Throws: ``MDNSError`` if there is no suitable network.
        public func start() throws(MDNSError) {
            let started = try Responder(address: address, port: port, logger: logger)
            responder.withLock { $0 = started }
        }

        /// Withdraws the announcement from the network.
        public func stop() {
            responder.withLock { $0.take() }?.stop()
        }
    }

    /// The address that the broker listens on.
    private struct ListeningAddress {
        let address: AvahiAddress
        let isIPv6: Bool
        let isWildcard: Bool

        init(_ text: String) throws(MDNSError) {
            var address = AvahiAddress()
            guard avahi_address_parse(text, MDNS.anyProtocol, &address) != nil else {
                throw MDNSError("a broker can be announced on a numeric address only, without a scope")
            }
            self.address = address
            isIPv6 = address.proto == AVAHI_PROTO_INET6
            let bytes = withUnsafeBytes(of: address.data) { Array($0) }.prefix(isIPv6 ? 16 : 4)
            isWildcard = bytes.allSatisfy { $0 == 0 }
            let isLoopback = isIPv6 ? bytes == Array(repeating: 0, count: 15) + [1] : bytes[0] == 127
            guard !isLoopback else {
                throw MDNSError("a broker on a loopback address, which no other machine reaches, can't be announced")
            }
        }
    }

    /// avahi's responder with its thread.
    ///
    /// `@unchecked Sendable`: the variables are used in the initializer before the thread starts, then by the callbacks
    /// on that thread, and in ``stop()`` after the thread has ended.
    private final class Responder: @unchecked Sendable {
        private let address: ListeningAddress
        private let port: UInt16
        private let logger: Logger
        private let poll: OpaquePointer
        private var server: OpaquePointer?
        private var group: OpaquePointer?
        private var name = MDNS.brokerName

        init(address: ListeningAddress, port: UInt16, logger: Logger) throws(MDNSError) {
            self.address = address
            self.port = port
            self.logger = logger
            guard let poll = avahi_threaded_poll_new() else { throw MDNSError("mDNS: out of memory") }
            self.poll = poll
            // The callbacks' context is this object, which frees the server before it is deinitialized.
            let context = Unmanaged.passUnretained(self).toOpaque()
            server = try MDNS.makeServer(
                avahi_threaded_poll_get(poll),
                context: context,
                callback: { server, state, context in
                    guard let server else { return }
                    Responder.from(context)?.changed(server, to: state)
                },
                change: { configuration in
                    // Without a separate name, the responder uses the host's name with all its addresses, like any
                    // other responder on this machine; equal records cause no conflict.
                    if !address.isWildcard { configuration.host_name = Self.newHostName() }
                    configuration.use_ipv4 = address.isIPv6 ? 0 : 1
                    configuration.use_ipv6 = address.isIPv6 ? 1 : 0
                    configuration.publish_aaaa_on_ipv4 = 0
                    configuration.publish_addresses = address.isWildcard ? 1 : 0
                }
            )
            guard avahi_threaded_poll_start(poll) == 0 else { throw MDNSError("mDNS: no thread") }
        }

        deinit {
            stop()
            avahi_threaded_poll_free(poll)
        }

        /// Ends the thread, and sends the goodbye packet of RFC 6762, section 10.1.
        func stop() {
            avahi_threaded_poll_stop(poll)
            if let server { avahi_server_free(server) }
            (server, group) = (nil, nil)
        }

        private static func from(_ context: UnsafeMutableRawPointer?) -> Responder? {
            context.map { Unmanaged<Responder>.fromOpaque($0).takeUnretainedValue() }
        }

        /// Returns a new name for a host that has only one address.
        private static func newHostName() -> UnsafeMutablePointer<CChar>? {
            avahi_strdup("coaty-" + String(UInt64.random(in: .min ... .max), radix: 16))
        }

        private func changed(_ server: OpaquePointer, to state: AvahiServerState) {
            switch state {
            case AVAHI_SERVER_RUNNING: register(server)
            case AVAHI_SERVER_REGISTERING: if let group { avahi_s_entry_group_reset(group) }
            case AVAHI_SERVER_COLLISION:
                let name = avahi_alternative_host_name(avahi_server_get_host_name(server))
                avahi_server_set_host_name(server, name)
                avahi_free(name)
            case AVAHI_SERVER_FAILURE: failed(server)
            default: break
            }
        }

        private func register(_ server: OpaquePointer) {
            if group == nil {
                group = avahi_s_entry_group_new(
                    server,
                    { server, _, state, context in
                        guard let server else { return }
                        Responder.from(context)?.groupChanged(server, to: state)
                    },
                    Unmanaged.passUnretained(self).toOpaque()
                )
            }
            guard let group else { return failed(server) }
            avahi_s_entry_group_reset(group)
            var announced = address.address
            if !address.isWildcard,
                avahi_server_add_address(
                    server,
                    group,
                    MDNS.everyInterface,
                    MDNS.anyProtocol,
                    AVAHI_PUBLISH_NO_REVERSE,
                    nil,
                    &announced
                ) < 0
            {
                return failed(server)
            }
            let code = avahi_server_add_service_strlst(
                server,
                group,
                MDNS.everyInterface,
                MDNS.anyProtocol,
                AvahiPublishFlags(0),
                name,
                MDNS.brokerType,
                nil,
                nil,
                port,
                nil
            )
            if code < 0 || avahi_s_entry_group_commit(group) < 0 { failed(server) }
        }

        private func groupChanged(_ server: OpaquePointer, to state: AvahiEntryGroupState) {
            switch state {
            case AVAHI_ENTRY_GROUP_ESTABLISHED:
                logger.info("broker is announced by mDNS", metadata: ["service": "\(name)", "port": "\(port)"])
            case AVAHI_ENTRY_GROUP_COLLISION:
                if let other = avahi_alternative_service_name(name) {
                    name = String(cString: other)
                    avahi_free(other)
                }
                register(server)
            default: break
            }
        }

        private func failed(_ server: OpaquePointer) {
            let reason = String(cString: avahi_strerror(avahi_server_errno(server)))
            logger.error("broker is not announced by mDNS", metadata: ["error": "\(reason)"])
        }
    }
#endif
