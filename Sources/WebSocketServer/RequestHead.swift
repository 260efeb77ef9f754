import CWebSockets

/// Reads the request head as parsed by libwebsockets. Service thread only, from the request's arrival until it is
/// answered.
enum RequestHead {
    struct Target {
        var path: String
        var queryItems: [(name: String, value: String)]
    }

    /// The header fields that libwebsockets stores by number, by their lower-case names.
    private static let knownFields: [String: lws_token_indexes] = {
        var fields: [String: lws_token_indexes] = [:]
        var number: UInt32 = 0
        while let bytes = lws_token_to_string(lws_token_indexes(number)) {
            let name = bytes.withMemoryRebound(to: CChar.self, capacity: 1) { String(cString: $0) }
            if name.hasSuffix(":"), !name.hasPrefix(":") {
                fields[String(name.dropLast())] = lws_token_indexes(number)
            }
            number += 1
        }
        return fields
    }()

    static func isPresent(_ token: lws_token_indexes, in wsi: OpaquePointer) -> Bool {
        lws_hdr_total_length(wsi, token) > 0
    }

    static func value(of token: lws_token_indexes, in wsi: OpaquePointer) -> String? {
        let length = Int(lws_hdr_total_length(wsi, token))
        guard length > 0 else { return nil }
        return text(capacity: length) { lws_hdr_copy(wsi, $0, $1, token) }
    }

    static func header(_ name: String, in wsi: OpaquePointer) -> String? {
        let name = name.lowercased()
        if let token = knownFields[name] {
            return value(of: token, in: wsi)
        }
        let key = name + ":"
        let length = Int(lws_hdr_custom_length(wsi, key, Int32(key.utf8.count)))
        guard length >= 0 else { return nil }
        return text(capacity: length) { lws_hdr_custom_copy(wsi, $0, $1, key, Int32(key.utf8.count)) }
    }

    /// Returns the percent-decoded target of a GET request; nil if it is not UTF-8.
    static func target(in wsi: OpaquePointer) -> Target? {
        let length = Int(lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI))
        guard let path = bytes(capacity: length, copy: { lws_hdr_copy(wsi, $0, $1, WSI_TOKEN_GET_URI) }),
            let path = String(validating: path, as: UTF8.self),
            let queryItems = queryItems(in: wsi)
        else { return nil }
        return Target(path: path, queryItems: queryItems)
    }

    private static func queryItems(in wsi: OpaquePointer) -> [(name: String, value: String)]? {
        // libwebsockets splits at `&` and `;`, without keeping the separators, and decodes the items. It reports no
        // count, and an empty item looks like the end, but its total length counts one byte between items.
        let total = Int(lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_URI_ARGS))
        var items: [(name: String, value: String)] = []
        var consumed = 0
        var index: Int32 = 0
        while consumed < total {
            let length = Int(lws_hdr_fragment_length(wsi, WSI_TOKEN_HTTP_URI_ARGS, index))
            if length > 0,
                let item = bytes(
                    capacity: length,
                    copy: { lws_hdr_copy_fragment(wsi, $0, $1, WSI_TOKEN_HTTP_URI_ARGS, index) }
                )
            {
                let parts = item.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
                guard let name = String(validating: parts[0], as: UTF8.self),
                    let value = String(validating: parts.count > 1 ? parts[1] : [], as: UTF8.self)
                else { return nil }
                items.append((name, value))
            }
            consumed += length + 1
            index += 1
        }
        // libwebsockets turns an empty query (`/path?`) into a slash.
        if items.count == 1, items[0] == ("/", "") { return [] }
        return items
    }

    private static func text(
        capacity: Int,
        copy: (UnsafeMutablePointer<CChar>?, Int32) -> Int32
    ) -> String? {
        bytes(capacity: capacity, copy: copy).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns copied bytes. `copy` gets space for `capacity` bytes and a terminating NUL, and returns the number of
    /// bytes, or a negative number on failure.
    private static func bytes(
        capacity: Int,
        copy: (UnsafeMutablePointer<CChar>?, Int32) -> Int32
    ) -> [UInt8]? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: capacity + 2) { buffer in
            let length = Int(copy(buffer.baseAddress, Int32(buffer.count)))
            guard length >= 0 else { return nil }
            return Array(UnsafeRawBufferPointer(buffer)[..<min(length, capacity)])
        }
    }
}
