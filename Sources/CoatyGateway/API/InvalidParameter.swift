import Coaty
import HTTPServer

/// A query or path parameter that can't be used.
struct InvalidParameter: Error {
    /// What the name of a channel or an object type must be.
    static let level =
        "must have 1 to \(CommunicationTopic.maximumLevelLength) bytes and hold none of / + # and no control"
        + " characters"

    let name: String
    let reason: String

    /// The value of a parameter that may be given once; nil where it is not given.
    static func single(_ name: String, _ values: [String]) throws(InvalidParameter) -> String? {
        guard values.count <= 1 else { throw InvalidParameter(name: name, reason: "must be given once") }
        return values.first
    }

    var problem: Problem { Problems.invalidParameter(name, reason) }
}
