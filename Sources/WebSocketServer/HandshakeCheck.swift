import CWebSockets

/// The requirements of RFC 6455, 4.2.1, on an opening handshake. libwebsockets checks most of them too, but drops the
/// connection without an answer; therefore all such errors are detected here first. libwebsockets itself answers, with
/// 403, an Upgrade field with anything other than `websocket` or `h2c`, such as a list.
struct HandshakeCheck {
    let configuration: WebSocketServer.Configuration

    enum Outcome {
        case valid(RequestHead.Target, offered: [String], chosen: String?)
        case invalid(Refusal)
    }

    /// Checks a handshake. Service thread only, while the request head exists.
    func check(_ wsi: OpaquePointer) -> Outcome {
        if let refusal = refusalOfMethod(wsi) {
            return .invalid(refusal)
        }
        guard isHTTP11(wsi) else {
            return .invalid(malformed("A WebSocket handshake is an HTTP/1.1 request"))
        }
        guard RequestHead.value(of: WSI_TOKEN_UPGRADE, in: wsi)?.lowercased() == "websocket" else {
            return .invalid(upgradeRequired(wsi))
        }
        guard RequestHead.isPresent(WSI_TOKEN_HOST, in: wsi) else {
            return .invalid(malformed("missing Host"))
        }
        guard let connection = RequestHead.value(of: WSI_TOKEN_CONNECTION, in: wsi),
            connection.utf8.count <= WebSocketServer.Configuration.maximumListLength,
            Self.list(connection).contains(where: { $0.lowercased() == "upgrade" })
        else {
            return .invalid(malformed("Connection does not list upgrade"))
        }
        guard RequestHead.value(of: WSI_TOKEN_VERSION, in: wsi) == "13" else {
            return .invalid(
                .problem(
                    "unsupported-version",
                    status: 426,
                    title: "Sec-WebSocket-Version is not 13",
                    headers: [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")],
                    configuration: configuration
                )
            )
        }
        guard let key = RequestHead.value(of: WSI_TOKEN_KEY, in: wsi), Self.isKey(key) else {
            return .invalid(malformed("Sec-WebSocket-Key is not 16 bytes in base64"))
        }
        guard areExtensionsUsable(wsi) else {
            return .invalid(malformed("Sec-WebSocket-Extensions is too long"))
        }
        guard let target = RequestHead.target(in: wsi) else {
            return .invalid(
                .problem(
                    "bad-request",
                    status: 400,
                    title: "Path or query is not UTF-8",
                    configuration: configuration
                )
            )
        }
        return checkSubprotocols(wsi, target)
    }

    /// Returns the answer to a request without an upgrade.
    func refusalOfPlainRequest(_ wsi: OpaquePointer) -> Refusal {
        refusalOfMethod(wsi) ?? upgradeRequired(wsi)
    }

    /// Returns the answer to a valid handshake if there is no space for it.
    func unavailable(isStopping: Bool) -> Refusal {
        .problem(
            isStopping ? "shutting-down" : "too-many-connections",
            status: 503,
            title: isStopping ? "The server is shutting down" : "There are too many connections",
            headers: [("Retry-After", "1")],
            configuration: configuration
        )
    }

    static func isUsableSubprotocol(_ name: some StringProtocol) -> Bool {
        (1...WebSocketServer.Configuration.maximumSubprotocolLength).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                    true
                default: false
                }
            }
    }

    private func refusalOfMethod(_ wsi: OpaquePointer) -> Refusal? {
        guard !RequestHead.isPresent(WSI_TOKEN_GET_URI, in: wsi) else { return nil }
        return .problem(
            "method-not-allowed",
            status: 405,
            title: "A WebSocket handshake is a GET request",
            headers: [("Allow", "GET")],
            configuration: configuration
        )
    }

    /// Returns whether the version is HTTP/1.1 or a later minor version, which must be answered as well (RFC 9110,
    /// 2.5).
    private func isHTTP11(_ wsi: OpaquePointer) -> Bool {
        guard let version = RequestHead.value(of: WSI_TOKEN_HTTP, in: wsi) else { return false }
        return version.hasPrefix("HTTP/1.") && version != "HTTP/1.0"
    }

    private func areExtensionsUsable(_ wsi: OpaquePointer) -> Bool {
        guard let offer = RequestHead.value(of: WSI_TOKEN_EXTENSIONS, in: wsi) else { return true }
        return offer.utf8.count <= WebSocketServer.Configuration.maximumExtensionsLength
    }

    private func checkSubprotocols(_ wsi: OpaquePointer, _ target: RequestHead.Target) -> Outcome {
        guard let offer = RequestHead.value(of: WSI_TOKEN_PROTOCOL, in: wsi) else {
            return .valid(target, offered: [], chosen: nil)
        }
        let offered = Self.list(offer).map(String.init)
        guard offer.utf8.count <= WebSocketServer.Configuration.maximumListLength,
            offered.allSatisfy(Self.isUsableSubprotocol),
            let chosen = offered.first(where: configuration.subprotocols.contains)
        else {
            return .invalid(
                .problem(
                    "unsupported-subprotocol",
                    status: 400,
                    title: "None of the offered subprotocols is supported",
                    configuration: configuration
                )
            )
        }
        return .valid(target, offered: offered, chosen: chosen)
    }

    private func upgradeRequired(_ wsi: OpaquePointer) -> Refusal {
        var refusal = Refusal.problem(
            "upgrade-required",
            status: 426,
            title: "This resource is a WebSocket",
            headers: [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")],
            configuration: configuration
        )
        if let path = RequestHead.target(in: wsi)?.path, let body = configuration.upgradeRequired?(path) {
            refusal.body = body
        }
        return refusal
    }

    private func malformed(_ title: String) -> Refusal {
        .problem("malformed-handshake", status: 400, title: title, configuration: configuration)
    }

    private static func list(_ value: String) -> [Substring] {
        value.split(separator: ",").map(trimmed)
    }

    static func trimmed(_ item: Substring) -> Substring {
        var item = item
        while let first = item.first, first == " " || first == "\t" { item.removeFirst() }
        while let last = item.last, last == " " || last == "\t" { item.removeLast() }
        return item
    }

    /// Returns whether a text is a key: 16 bytes in base64 are 22 characters and two of padding.
    private static func isKey(_ key: String) -> Bool {
        key.utf8.count == 24 && key.hasSuffix("==")
            && key.utf8.dropLast(2).allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
                    true
                default: false
                }
            }
    }
}
