import Coaty
import HTTPServer

/// A query or path parameter, or a header field, that can't be used.
struct InvalidParameter: Error {
    /// What the name of a channel or an object type must be.
    static let level =
        "must have 1 to \(WireName.maximumLength) bytes and hold none of / + # and no control"
        + " characters"

    let name: String
    let reason: String

    var problem: Problem { Problems.invalidParameter(name, reason) }
}
