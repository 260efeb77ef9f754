import Access
import Base
import CCurl
import Foundation

/// Asks a gateway, whose messages do not arrive through the broker, whether it is ready. Its functions block.
package enum PeerProbe {
    /// Maximum time of a request.
    private static let timeout = Duration.seconds(2)
    /// libcurl requires one call of this before its first use.
    private static let hasStarted = ccurl_start() == CURLE_OK

    /// Returns whether the gateway at a URL is ready, and so connected to its broker.
    static func isReady(_ url: String) -> Bool {
        guard hasStarted, let handle = curl_easy_init() else { return false }
        defer { curl_easy_cleanup(handle) }
        // The certificate is not verified: the request contains no secrets.
        let prepared = ccurl_prepare_request(
            handle,
            url,
            "GET",
            nil,
            nil,
            0,
            Int(timeout / .milliseconds(1)),
            nil,
            0,
            0,
            { _, size, count, _ in size * count },
            { _, _, _, _, _ in 0 },
            nil
        )
        guard prepared == CURLE_OK else { return false }
        return curl_easy_perform(handle) == CURLE_OK && ccurl_status(handle) == 200
    }

    /// Returns the URL at which the other gateways may reach this one.
    ///
    /// - Parameters:
    ///   - host: the address that it listens on. If that is any, its address towards the broker is used.
    ///   - broker: the host name or address of the broker.
    /// - Returns: nil if the address is unknown, or if it is a loopback address and that of the broker is not: then the
    ///   others are probably on other machines.
    package static func url(host: String, port: UInt16, isEncrypted: Bool, broker: String) -> String? {
        let isAny = ["", "0.0.0.0", "::"].contains(host)
        guard let address = isAny ? localAddress(towards: broker) : host,
            HostName.isLoopback(broker) || !HostName.isLoopback(address)
        else { return nil }
        let authority = address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)"
        return "\(isEncrypted ? "https" : "http")://\(authority)/readyz"
    }

    private static func localAddress(towards host: String) -> String? {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        // The port does not matter: nothing is sent.
        guard getaddrinfo(host, "1883", &hints, &list) == 0, let first = list?.pointee else { return nil }
        defer { freeaddrinfo(list) }
        let descriptor = socket(first.ai_family, first.ai_socktype, first.ai_protocol)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        guard connect(descriptor, first.ai_addr, first.ai_addrlen) == 0 else { return nil }
        let isKnown = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) == 0 }
        }
        return isKnown ? numericAddress(of: storage) : nil
    }
}
