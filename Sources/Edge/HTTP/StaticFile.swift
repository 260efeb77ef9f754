import Base
import HTTPServer

/// A constant file with its prepared responses: as it is, and as gzip.
struct StaticFile: Sendable {
    /// The responses with one content coding. Its tag is that of its bytes, so codings have different tags.
    private struct Representation: Sendable {
        let tag: EntityTag
        let whole: HTTPResponse
        let unchanged: HTTPResponse

        init(_ bytes: [UInt8], _ mediaType: String, _ headers: [(name: String, value: String)]) {
            tag = EntityTag(bytes)
            let all = headers + [("ETag", tag.text)]
            unchanged = HTTPResponse(status: 304, headers: all)
            whole = HTTPResponse(status: 200, headers: [("Content-Type", mediaType)] + all, body: bytes)
        }
    }

    private let plain: Representation
    /// Nil if it is not smaller.
    private let compressed: Representation?

    /// - Parameter headers: header fields of every response.
    init(_ text: [UInt8], mediaType: String, headers: [(name: String, value: String)]) {
        let headers = headers + [("Vary", "Accept-Encoding"), ("Cache-Control", "no-cache")]
        plain = Representation(text, mediaType, headers)
        let bytes = Gzip.whole(text, .thorough).flatMap { $0.count < text.count ? $0 : nil }
        compressed = bytes.map { Representation($0, mediaType, headers + [("Content-Encoding", "gzip")]) }
    }

    func response(to request: borrowing HTTPRequest) -> HTTPResponse {
        let selected = request.prefersGzip ? compressed ?? plain : plain
        // A malformed condition is ignored: sending the whole file is always correct.
        let condition = request.header("If-None-Match").flatMap { try? IfMatch($0) }
        return condition?.holdsWeakly(for: selected.tag) ?? false ? selected.unchanged : selected.whole
    }
}
