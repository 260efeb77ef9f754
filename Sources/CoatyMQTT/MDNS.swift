import Foundation

#if os(Linux)
    import CAvahi
    import Logging
#endif

/// What Coaty brokers are called in DNS-SD (RFC 6763); the names are those of the broker of coaty-js.
enum MDNS {
    /// The service type.
    static let brokerType = "_coaty-mqtt._tcp"
    /// The instance name, which agents on coaty-js look for.
    static let brokerName = "Coaty MQTT Broker"
}

/// Why a broker can't be discovered or announced by mDNS.
public struct MDNSError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The reason.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}

#if os(Linux)
    /// Where a broker was found.
    struct BrokerEndpoint: Hashable, Comparable, CustomStringConvertible {
        /// The instance name of the service.
        let service: String
        let isIPv6: Bool
        /// Numeric; a link-local IPv6 address has its scope, as in `fe80::1%eth0`.
        let address: String
        let port: UInt16

        var description: String { isIPv6 ? "[\(address)]:\(port)" : "\(address):\(port)" }

        /// IPv4 goes first, as coaty-swift knows nothing else.
        static func < (left: Self, right: Self) -> Bool {
            if left.isIPv6 != right.isIPv6 { return right.isIPv6 }
            return (left.service, left.address, left.port) < (right.service, right.address, right.port)
        }
    }

    extension MDNS {
        static let everyInterface = AvahiIfIndex(AVAHI_IF_UNSPEC)
        static let anyProtocol = AvahiProtocol(AVAHI_PROTO_UNSPEC)

        /// Makes avahi's responder, which lives in this process and needs no daemon. Left alone it publishes nothing.
        ///
        /// All of it is used on the thread that runs `poll`, and its callbacks come on that thread.
        ///
        /// - Parameters:
        ///   - poll: the event loop, which must live longer.
        ///   - context: what `callback` gets.
        ///   - change: what differs from the configuration of somebody who only asks.
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

        /// avahi asks the kernel for the interfaces by netlink, and aborts the process where it may not, as under a
        /// restriction of address families.
        private static func checkNetlink() throws(MDNSError) {
            // 0 is NETLINK_ROUTE, which the module Glibc does not have.
            let descriptor = socket(AF_NETLINK, Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            guard descriptor >= 0 else {
                throw MDNSError("mDNS: no netlink socket, which it needs: \(String(cString: strerror(errno)))")
            }
            close(descriptor)
        }

        /// avahi would write to standard error. It warns whenever another responder runs, as on many desktops.
        private static let log: Void = {
            avahi_set_log_function { level, text in
                guard let text else { return }
                MDNS.logger.log(level: level == AVAHI_LOG_ERROR ? .warning : .debug, "avahi: \(String(cString: text))")
            }
        }()
        private static let logger = Logger(label: "coaty.mdns")
    }
#endif
