import Foundation

#if os(Linux)
    import CAvahi
    import Logging
#endif

/// The names of Coaty brokers in DNS-SD (RFC 6763), as used by the broker of coaty-js.
enum MDNS {
    /// The service type.
    static let brokerType = "_coaty-mqtt._tcp"
    /// The instance name, which agents on coaty-js search for.
    static let brokerName = "Coaty MQTT Broker"
}

/// The reason why a broker can't be discovered or announced by mDNS.
public struct MDNSError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The reason.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}

#if os(Linux)
    /// The endpoint of a discovered broker.
    struct BrokerEndpoint: Hashable, Comparable, CustomStringConvertible {
        /// The instance name of the service.
        let service: String
        let isIPv6: Bool
        /// The numeric address; for link-local IPv6 addresses with the scope, as in `fe80::1%eth0`.
        let address: String
        let port: UInt16

        var description: String { isIPv6 ? "[\(address)]:\(port)" : "\(address):\(port)" }

        /// Returns whether the left endpoint comes first: IPv4 precedes IPv6, because coaty-swift supports only IPv4.
        static func < (left: Self, right: Self) -> Bool {
            if left.isIPv6 != right.isIPv6 { return right.isIPv6 }
            return (left.service, left.address, left.port) < (right.service, right.address, right.port)
        }
    }

    extension MDNS {
        static let everyInterface = AvahiIfIndex(AVAHI_IF_UNSPEC)
        static let anyProtocol = AvahiProtocol(AVAHI_PROTO_UNSPEC)

        /// Creates avahi's responder, which runs in this process and needs no daemon. By default, it publishes nothing.
        ///
        /// The responder is used only on the thread that runs `poll`, and its callbacks are called on that thread.
        ///
        /// - Parameters:
        ///   - poll: the event loop, which must outlive the responder.
        ///   - context: the argument of `callback`.
        ///   - change: changes the configuration, which is that of a client which only sends queries.
        static func makeServer(
            _ poll: UnsafePointer<AvahiPoll>?,
            context: UnsafeMutableRawPointer? = nil,
            callback: AvahiServerCallback? = nil,
            change: (inout AvahiServerConfig) -> Void = { _ in }
        ) throws(MDNSError) -> OpaquePointer {
            _ = log
            try checkNetlink()
            var configuration = AvahiServerConfig()
            avahi_server_config_init(&configuration)
            defer { avahi_server_config_free(&configuration) }
            configuration.publish_hinfo = 0
            configuration.publish_addresses = 0
            configuration.publish_workstation = 0
            configuration.publish_domain = 0
            configuration.enable_wide_area = 0
            change(&configuration)
            var code: Int32 = 0
            guard let server = avahi_server_new(poll, &configuration, callback, context, &code) else {
                throw MDNSError("mDNS: \(String(cString: avahi_strerror(code)))")
            }
            return server
        }

        /// Checks that netlink is available. avahi uses it to list the interfaces, and aborts the process if it is not
        /// permitted, for example because address families are restricted.
        private static func checkNetlink() throws(MDNSError) {
            // 0 is NETLINK_ROUTE, which the module Glibc does not define.
            let descriptor = socket(AF_NETLINK, Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            guard descriptor >= 0 else {
                throw MDNSError("mDNS: no netlink socket, which it needs: \(String(cString: strerror(errno)))")
            }
            close(descriptor)
        }

        /// Disables avahi's log: it writes to standard error, and warns whenever another responder runs, as on many
        /// desktops.
        private static let log: Void = {
            avahi_set_log_function { level, text in
                guard let text else { return }
                MDNS.logger.log(level: level == AVAHI_LOG_ERROR ? .warning : .debug, "avahi: \(String(cString: text))")
            }
        }()
        private static let logger = Logger(label: "coaty.mdns")
    }
#endif
