import ArgumentParser
import Foundation

/// The gateway that a client command uses.
struct GatewayOptions: ParsableArguments {
    @Option(help: "Address of the gateway.")
    var url = "http://127.0.0.1:8080"

    @Option(
        help: "Access token (COATY_GATEWAY_TOKEN). Other users of this machine can read flags, but not the environment."
    )
    var token: String?

    @Option(
        help: "PEM file of the authorities that sign the gateway's certificate (the system's).",
        completion: .file()
    )
    var caFile: String?

    func validate() throws {
        guard let address = URLComponents(string: url), let scheme = address.scheme?.lowercased(),
            ["http", "https"].contains(scheme), let host = address.host, !host.isEmpty, address.user == nil,
            address.password == nil, address.query == nil, address.fragment == nil
        else {
            throw ValidationError("--url must be http[s]://host[:port][/path]")
        }
        guard secret?.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) ?? true else {
            throw ValidationError("the token must be visible ASCII characters")
        }
    }

    /// The access token; nil if there is none.
    private var secret: String? {
        let token = token ?? ProcessInfo.processInfo.environment["COATY_GATEWAY_TOKEN"]
        return token?.isEmpty == false ? token : nil
    }

    /// Whether the address is one of this machine, which a proxy can't reach.
    private var isLoopback: Bool {
        let host = URLComponents(string: url)?.host?.lowercased() ?? ""
        return host == "localhost" || host.hasPrefix("127.") || host == "[::1]" || host == "::1"
    }

    /// Returns a request.
    ///
    /// - Parameters:
    ///   - path: the path, whose segments are percent-encoded.
    ///   - query: names and values of the query; those without a value are left out.
    func request(_ path: String, query: [(name: String, value: String?)] = [], accept: String? = nil) -> HTTPRequest {
        let pairs = query.compactMap { pair in
            pair.value.map { "\(Self.encoded(pair.name))=\(Self.encoded($0))" }
        }
        let base = url.hasSuffix("/") ? String(url.dropLast()) : url
        var request = HTTPRequest(url: base + path + (pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&")))
        request.authorities = caFile
        request.usesProxy = !isLoopback
        if let secret { request.headers.append("Authorization: Bearer \(secret)") }
        if let accept { request.headers.append("Accept: \(accept)") }
        return request
    }

    /// Returns a text with all but the unreserved characters of URLs percent-encoded (RFC 3986, 2.3).
    static func encoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                bytes.append(byte)
            default: bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension HTTPRequest {
    /// Adds a JSON body.
    mutating func post(_ body: [UInt8], type: String = "application/json") {
        method = "POST"
        headers.append("Content-Type: \(type)")
        self.body = body
    }
}
