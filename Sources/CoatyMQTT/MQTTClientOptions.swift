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
    /// Seconds without traffic after which the link is probed; 5 to 65535.
    public var keepAlive: UInt16
    /// TLS; nil connects in the clear.
    public var tls: TLSOptions?
    /// Whether to look for the broker by mDNS (`_coaty-mqtt._tcp`) each time before the binding connects; then ``host``
    /// and ``port`` are ignored. Off by default, as anybody in the local network can pose as a broker. With ``tls`` the
    /// broker's certificate must name the address that is found.
    public var shouldTryMDNSDiscovery: Bool
    /// How long an attempt waits for a broker to answer by mDNS; then it fails like one to connect.
    public var mdnsDiscoveryTimeout: Duration

    /// How to secure the link.
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
        keepAlive: UInt16 = 60,
        tls: TLSOptions? = nil,
        shouldTryMDNSDiscovery: Bool = false,
        mdnsDiscoveryTimeout: Duration = Self.defaultMDNSDiscoveryTimeout
    ) {
        self.host = host
        self.port = port
        self.username = username
        self.password = password
        self.keepAlive = keepAlive
        self.tls = tls
        self.shouldTryMDNSDiscovery = shouldTryMDNSDiscovery
        self.mdnsDiscoveryTimeout = mdnsDiscoveryTimeout
    }

    /// Five seconds, as long as coaty-swift waits.
    public static let defaultMDNSDiscoveryTimeout = Duration.seconds(5)

    /// Reads `mqtt://[user[:password]@]host[:port]` or `mqtts://…`, with ports 1883 and 8883 by default.
    ///
    /// - Throws: ``MQTTOptionsError`` where the text is no such URL.
    public init(url text: String) throws(MQTTOptionsError) {
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
        keepAlive = 60
        shouldTryMDNSDiscovery = false
        mdnsDiscoveryTimeout = Self.defaultMDNSDiscoveryTimeout
    }

    /// The broker's address without user name and password, for people; where it is to be discovered, with the name of
    /// the service instead of host and port.
    public var address: String {
        let scheme = tls == nil ? "mqtt" : "mqtts"
        if shouldTryMDNSDiscovery { return "\(scheme)://\(MDNS.brokerType).local" }
        return "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)"
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
