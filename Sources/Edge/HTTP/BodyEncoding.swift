import Base
import HTTPServer
import ProblemDetails

/// The encoding of request bodies: no content coding, and JSON is UTF-8 (RFC 8259, section 8.1).
enum BodyEncoding {
    private static let textTypes = ["application/json", "application/merge-patch+json", "application/x-ndjson"]
    /// Names of UTF-8 and of its subset ASCII, in lower case.
    private static let charsets: Set = ["utf-8", "utf8", "us-ascii", "ascii"]
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// Returns the body of a request without a byte order mark; nil if the body needs no change.
    ///
    /// - Throws: `Problem` with status 415 for a content coding or another charset, 400 for UTF-16 or UTF-32.
    static func decoded(_ request: borrowing HTTPRequest) throws(Problem) -> [UInt8]? {
        guard !request.body.isEmpty else { return nil }
        if let coding = request.header("Content-Encoding"), !coding.isEmpty, coding.lowercased() != "identity" {
            throw unsupported(coding: coding)
        }
        guard textTypes.contains(where: { request.hasContentType($0) }) else { return nil }
        if let charset = request.contentTypeParameter("charset"), !charsets.contains(charset.lowercased()) {
            throw unsupported(charset: charset)
        }
        return try withoutMark(request.body)
    }

    /// Returns a JSON text without its byte order mark; nil if it has none.
    private static func withoutMark(_ body: [UInt8]) throws(Problem) -> [UInt8]? {
        if body.starts(with: byteOrderMark) { return Array(body.dropFirst(byteOrderMark.count)) }
        // JSON begins with an ASCII character, which is a zero byte and another one in UTF-16, and has no zero bytes in
        // UTF-8.
        let start = body.prefix(2)
        guard start.count == 2, start == [0xFE, 0xFF] || start == [0xFF, 0xFE] || start.contains(0) else { return nil }
        throw Problem(
            type: Problems.typePrefix + "malformed-json",
            title: "Malformed JSON",
            status: 400,
            detail: "The body looks like UTF-16 or UTF-32. Send it as UTF-8."
        )
    }

    /// RFC 9110, section 15.5.16: `Accept-Encoding` shows that the coding is refused, not the media type.
    private static func unsupported(coding: String) -> Problem {
        var problem = unsupported(
            "The gateway does not decode the content coding \(Problems.short(coding)). Send the body without Content-Encoding."
        )
        problem.headers.append(("Accept-Encoding", "identity"))
        return problem
    }

    private static func unsupported(charset: String) -> Problem {
        unsupported("The charset of the body is \(Problems.short(charset)). Send it as UTF-8.")
    }

    private static func unsupported(_ detail: String) -> Problem {
        Problem(
            type: Problems.typePrefix + "unsupported-media-type",
            title: "Unsupported media type",
            status: 415,
            detail: detail
        )
    }
}
