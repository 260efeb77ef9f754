import Foundation

/// The options of an MQTT connection to a broker.
public struct MQTTClientOptions: Sendable {
    /// The broker's host name or address.
    public var host: String
    /// The broker's port.
    public var port: UInt16
    /// The user name, if the broker requires one.
    public var username: String?
    /// The password for the user name.
    public var password: String?
    /// File whose first line is the password, instead of ``password``. It is read for each attempt to connect, so that
    /// a new password is used from the next connection on.
    public var passwordFile: String?
    /// Further brokers of the same network, with the same user and TLS: all are tried in turn, ``host`` first.
    public var fallbackBrokers: [BrokerAddress]
    /// Seconds without traffic after which the connection is probed; 5 to 65535. Without ``checkInterval``, a broker that
    /// stops answering is detected after at most twice that time or, if publications fill the connection meanwhile,
    /// after that time once it is full.
    public var keepAlive: UInt16
    /// The time without incoming bytes after which the broker is sent a packet that it must answer within the same time;
    /// otherwise the connection is lost. It is checked about once a second. Zero leaves this to ``keepAlive``. The checks
    /// begin when the broker has answered all subscriptions, and need Linux.
    public var checkInterval = Self.defaultCheckInterval
    /// Maximum time for a broker to accept a connection: TCP, TLS and MQTT together.
    public var connectTimeout: Duration
    /// The broker's treatment of `.` and `/` in topics.
    public var topicDialect: TopicDialect
    /// Maximum number of topic filters in a SUBSCRIBE or UNSUBSCRIBE packet: some brokers close the connection above 8.
    public var filtersPerPacket: Int
    /// Maximum size of the payload of a message, in bytes. A longer one is dropped, and its observers get a gap.
    public var maximumMessageSize = Self.defaultMaximumMessageSize
    /// Maximum size of a packet, in bytes. The bytes of a longer message are discarded when they arrive, and other
    /// packets may have at most 64 KiB. With TLS, a longer packet closes the connection, because libmosquitto keeps an
    /// incomplete packet in memory.
    public var maximumPacketSize = Self.defaultMaximumMessageSize + Self.maximumHeadSize
    /// The version of MQTT. Coaty specifies MQTT 3.1.1 for agents; with MQTT 5, an agent also knows the broker's limits.
    public var version = MQTTVersion.v311
    /// Maximum size of a packet with a publication, in bytes, if the broker does not state one: MQTT 3.1.1 has no way to.
    /// Brokers close the connection because of a larger packet.
    public var maximumPublicationSize = Self.defaultMaximumPublicationSize
    /// The TLS options; nil connects without TLS.
    public var tls: TLSOptions?
    /// Whether to discover the broker by mDNS (`_coaty-mqtt._tcp`) before each connection; then ``host`` and ``port``
    /// are ignored. Off by default, because any machine in the local network can pose as a broker. With ``tls``, the
    /// broker's certificate must contain the discovered address.
    public var shouldTryMDNSDiscovery: Bool
    /// Maximum time that an attempt waits for a broker to answer by mDNS; after that, it fails like an attempt to
    /// connect.
    public var mdnsDiscoveryTimeout: Duration

    /// Returns the numeric addresses of a name; tests replace it. It may block.
    var lookUp: @Sendable (_ name: String) -> [String] = { CoatyMQTT.BrokerAddress.lookUp($0) }

    /// The address of a broker.
    public struct BrokerAddress: Sendable, Hashable {
        /// The host name or address.
        public var host: String
        /// The port.
        public var port: UInt16

        /// Creates an address.
        public init(host: String, port: UInt16 = 1883) {
            self.host = host
            self.port = port
        }
    }

    /// The options for TLS.
    public struct TLSOptions: Sendable, Hashable {
        /// PEM file of the authorities that may have signed the broker's certificate; nil uses the system's
        /// authorities.
        public var caFile: String?
        /// PEM file of the client's certificate, if the broker requires one.
        public var certificateFile: String?
        /// PEM file of the client's private key.
        public var keyFile: String?

        /// Creates options; the broker's certificate and host name are always verified.
        public init(caFile: String? = nil, certificateFile: String? = nil, keyFile: String? = nil) {
            self.caFile = caFile
            self.certificateFile = certificateFile
            self.keyFile = keyFile
        }
    }

    /// Creates options.
    public init(
        host: String = "localhost",
        port: UInt16 = 1883,
        username: String? = nil,
        password: String? = nil,
        fallbackBrokers: [BrokerAddress] = [],
        keepAlive: UInt16 = Self.defaultKeepAlive,
        connectTimeout: Duration = Self.defaultConnectTimeout,
        topicDialect: TopicDialect = .plain,
        filtersPerPacket: Int = Self.defaultFiltersPerPacket,
        tls: TLSOptions? = nil,
        shouldTryMDNSDiscovery: Bool = false,
        mdnsDiscoveryTimeout: Duration = Self.defaultMDNSDiscoveryTimeout
    ) {
        self.host = host
        self.port = port
        self.username = username
        self.password = password
        self.fallbackBrokers = fallbackBrokers
        self.keepAlive = keepAlive
        self.connectTimeout = connectTimeout
        self.topicDialect = topicDialect
        self.filtersPerPacket = filtersPerPacket
        self.tls = tls
        self.shouldTryMDNSDiscovery = shouldTryMDNSDiscovery
        self.mdnsDiscoveryTimeout = mdnsDiscoveryTimeout
    }

    /// 16 MiB; MQTT itself allows 256 MiB.
    public static let defaultMaximumMessageSize = 16 << 20
    /// 1 MiB, the lowest default limit of common brokers (EMQX).
    public static let defaultMaximumPublicationSize = 1 << 20
    /// Maximum size of a packet without its payload, in bytes: a topic and a few further bytes.
    public static let maximumHeadSize = (64 << 10) + 16
    /// Ten seconds.
    public static let defaultKeepAlive: UInt16 = 10
    /// Five seconds, the minimum of libmosquitto. A shorter interval is increased to it.
    static let minimumKeepAlive: UInt16 = 5
    /// Three seconds.
    public static let defaultCheckInterval = Duration.seconds(3)
    /// Five seconds.
    public static let defaultConnectTimeout = Duration.seconds(5)
    /// Eight.
    public static let defaultFiltersPerPacket = 8
    /// Five seconds, as in coaty-swift.
    public static let defaultMDNSDiscoveryTimeout = Duration.seconds(5)

    /// Parses `mqtt://[user[:password]@]host[:port]` or `mqtts://…`, with default ports 1883 and 8883. Several URLs are
    /// separated by commas: they are tried in turn, and must have the same scheme, user and password.
    ///
    /// - Throws: ``MQTTOptionsError`` if the text is not such a URL.
    public init(url text: String) throws(MQTTOptionsError) {
        let urls = text.split(separator: ",", omittingEmptySubsequences: false).map {
            $0.trimmingCharacters(in: .whitespaces)
        }
        try self.init(oneURL: urls[0])
        for url in urls.dropFirst() {
            let other = try MQTTClientOptions(oneURL: url)
            guard other.tls == tls, other.username == username, other.password == password else {
                throw .invalidURL("all brokers must have the same scheme, user and password")
            }
            fallbackBrokers.append(BrokerAddress(host: other.host, port: other.port))
        }
    }

    private init(oneURL text: String) throws(MQTTOptionsError) {
        guard let url = URLComponents(string: text), let host = url.host, !host.isEmpty else {
            throw .invalidURL("expected mqtt://host[:port] or mqtts://host[:port]")
        }
        switch url.scheme?.lowercased() {
        case "mqtt": tls = nil
        case "mqtts": tls = TLSOptions()
        default: throw .invalidURL("the scheme must be mqtt or mqtts")
        }
        guard ["", "/"].contains(url.path), url.query == nil, url.fragment == nil else {
            throw .invalidURL("nothing may follow the port")
        }
        guard let port = UInt16(exactly: url.port ?? (tls == nil ? 1883 : 8883)), port > 0 else {
            throw .invalidURL("the port must be 1 to 65535")
        }
        self.port = port
        self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        username = url.user
        password = url.password
        fallbackBrokers = []
        keepAlive = Self.defaultKeepAlive
        connectTimeout = Self.defaultConnectTimeout
        topicDialect = .plain
        filtersPerPacket = Self.defaultFiltersPerPacket
        shouldTryMDNSDiscovery = false
        mdnsDiscoveryTimeout = Self.defaultMDNSDiscoveryTimeout
    }

    /// The brokers' addresses without user name and password, for people. For a discovered broker, the name of the
    /// service replaces host and port.
    public var address: String {
        let scheme = tls == nil ? "mqtt" : "mqtts"
        if shouldTryMDNSDiscovery { return "\(scheme)://\(MDNS.brokerType).local" }
        return ([BrokerAddress(host: host, port: port)] + fallbackBrokers).map { broker in
            "\(scheme)://\(broker.host.contains(":") ? "[\(broker.host)]" : broker.host):\(broker.port)"
        }
        .joined(separator: ",")
    }
}

/// The reason why options can't be used.
public enum MQTTOptionsError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The broker's URL is not valid. The reason does not repeat the URL, which may contain a password.
    case invalidURL(String)

    /// The reason.
    public var description: String {
        switch self {
        case .invalidURL(let reason): reason
        }
    }
}
