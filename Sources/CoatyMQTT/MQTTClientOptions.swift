import Foundation

/// How to reach the broker.
public struct MQTTClientOptions: Sendable {
    /// The broker's host name or address.
    public var host: String
    /// The broker's port.
    public var port: UInt16
    /// The user name, where the broker asks for one.
    public var username: String?
    /// The password that goes with the user name.
    public var password: String?
    /// File whose first line is the password, instead of ``password``. It is read at each attempt to connect, so that a new one counts
    /// from the next connection on.
    public var passwordFile: String?
    /// Further brokers of the same network, with the same user and TLS: all are tried in turn, ``host`` first.
    public var fallbackBrokers: [BrokerAddress]
    /// Seconds without traffic after which the connection is probed; 5 to 65535. A broker that stops answering is noticed after
    /// at most twice that time.
    public var keepAlive: UInt16
    /// How long a broker may take to accept a connection: TCP, TLS and MQTT together.
    public var connectTimeout: Duration
    /// How the broker treats `.` and `/` in topics.
    public var topicDialect: TopicDialect
    /// Maximum number of topic filters in a SUBSCRIBE or UNSUBSCRIBE packet: some brokers close the connection above 8.
    public var filtersPerPacket: Int
    /// Maximum size of the payload of a message, in bytes. A longer one is dropped, and its observers get a gap.
    public var maximumMessageSize = Self.defaultMaximumMessageSize
    /// Maximum size of a packet, in bytes. If more of one has come, the connection is closed: it would be held until it is complete.
    public var maximumPacketSize = Self.defaultMaximumMessageSize + Self.maximumHeadSize
    /// TLS; nil connects without.
    public var tls: TLSOptions?
    /// Whether to look for the broker by mDNS (`_coaty-mqtt._tcp`) each time before the binding connects; then ``host``
    /// and ``port`` are ignored. Off by default, as anybody in the local network can pose as a broker. With ``tls`` the
    /// broker's certificate must name the address that is found.
    public var shouldTryMDNSDiscovery: Bool
    /// How long an attempt waits for a broker to answer by mDNS; then it fails like one to connect.
    public var mdnsDiscoveryTimeout: Duration

    /// Where a broker listens.
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

    /// How to secure the connection.
    public struct TLSOptions: Sendable, Hashable {
        /// PEM file of the authorities that may have signed the broker's certificate; nil takes the system's.
        public var caFile: String?
        /// PEM file of the client's certificate, where the broker asks for one.
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
    /// Maximum size of what a packet has besides a payload: a topic, and a few bytes.
    public static let maximumHeadSize = (64 << 10) + 16
    /// Ten seconds.
    public static let defaultKeepAlive: UInt16 = 10
    /// Five seconds: libmosquitto accepts no less. A shorter time counts as this.
    static let minimumKeepAlive: UInt16 = 5
    /// Five seconds.
    public static let defaultConnectTimeout = Duration.seconds(5)
    /// Eight.
    public static let defaultFiltersPerPacket = 8
    /// Five seconds, as long as coaty-swift waits.
    public static let defaultMDNSDiscoveryTimeout = Duration.seconds(5)

    /// Reads `mqtt://[user[:password]@]host[:port]` or `mqtts://…`, with ports 1883 and 8883 by default. Several URLs are separated by
    /// commas: they are tried in turn, and must agree on scheme, user and password.
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

    /// The brokers' addresses without user name and password, for people. For a broker that is to be discovered, the name of the
    /// service stands instead of host and port.
    public var address: String {
        let scheme = tls == nil ? "mqtt" : "mqtts"
        if shouldTryMDNSDiscovery { return "\(scheme)://\(MDNS.brokerType).local" }
        return ([BrokerAddress(host: host, port: port)] + fallbackBrokers).map { broker in
            "\(scheme)://\(broker.host.contains(":") ? "[\(broker.host)]" : broker.host):\(broker.port)"
        }
        .joined(separator: ",")
    }
}

/// Why options can't be used.
public enum MQTTOptionsError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The broker's URL is not understood. The reason does not repeat the URL, which may hold a password.
    case invalidURL(String)

    /// The reason.
    public var description: String {
        switch self {
        case .invalidURL(let reason): reason
        }
    }
}
