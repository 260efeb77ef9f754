package import Coaty
package import ProblemDetails

/// The problems (RFC 9457) that the gateway's own code returns; openapi.yaml lists them.
package enum Problems {
    package static let typePrefix = "urn:coaty-gateway:problem:"

    /// Header fields of a problem that probably lasts no longer than a second, such as a missing broker connection or a
    /// full queue.
    package static let retry = [(name: "Retry-After", value: "1")]

    package static func of(_ error: PayloadError) -> Problem {
        switch error {
        case .malformed(let error):
            Problem(
                type: typePrefix + "malformed-json",
                title: "Malformed JSON",
                status: 400,
                detail: error.description
            )
        case .invalid(let pointer, let reason): invalidValue(short(pointer), reason)
        }
    }

    private static func invalidValue(_ pointer: String, _ reason: String) -> Problem {
        Problem(
            type: typePrefix + "invalid-value",
            title: "Invalid value",
            status: 400,
            detail: pointer.isEmpty
                ? "The body \(reason)." : "\(pointer) \(reason == "missing" ? "is missing" : reason).",
            members: [("pointer", .string(pointer))]
        )
    }

    /// Maximum number of bytes of client text that a response repeats.
    private static let maximumEcho = 1024

    /// Returns client text, truncated so that a response does not become much larger than the request.
    package static func short(_ text: String) -> String {
        // Counts bytes, since a character may have any length.
        text.utf8.count <= maximumEcho
            ? text : String(decoding: text.utf8.prefix(maximumEcho), as: UTF8.self) + "…"
    }

    package static func of(_ error: CommunicationError) -> Problem {
        switch error {
        case .offline:
            Problem(
                type: typePrefix + "broker-unavailable",
                title: "Broker unavailable",
                status: 503,
                detail: "The gateway is not connected to its broker.",
                headers: retry
            )
        case .queueFull:
            Problem(
                type: typePrefix + "queue-full",
                title: "Queue full",
                status: 503,
                detail: "\(error).",
                headers: retry
            )
        case .exceedsBrokerLimit:
            Problem(
                type: typePrefix + "exceeds-broker-limit",
                title: "Exceeds broker limit",
                status: 413,
                detail: "\(error)."
            )
        case .closesConnection:
            Problem(
                type: typePrefix + "refused-by-broker",
                title: "Refused by broker",
                status: 409,
                detail: "\(error)."
            )
        case .retainUnavailable:
            Problem(
                type: typePrefix + "retain-unavailable",
                title: "Retain unavailable",
                status: 409,
                detail: "\(error)."
            )
        case .invalidName, .invalidTopic, .notARequest, .incompatibleIoValue:
            Problem(type: typePrefix + "bad-request", title: "Bad request", status: 400, detail: "\(error).")
        }
    }

    /// Returns the problem with a publication that was given up after it was accepted.
    package static func refusedByBroker(_ publication: RefusedPublication) -> Problem {
        let object = publication.objectId.map { " The object \($0.string) is no longer advertised." } ?? ""
        return Problem(
            type: typePrefix + "refused-by-broker",
            title: "Refused by broker",
            status: 409,
            detail: """
                The broker closes the connection when it receives this publication: \(short("\(publication.kind)")), \
                \(publication.size) bytes.\(object)
                """
        )
    }

    /// Returns the problem for an error that was thrown while reading a request or publishing an event.
    package static func of(_ error: any Error) -> Problem {
        switch error {
        case let error as Problem: error
        case let error as any ProblemError: error.problem
        case let error as PayloadError: of(error)
        case let error as CommunicationError: of(error)
        // Valid JSON, but not an object of its registered class.
        case let error as DecodingError: of(.invalid(pointer: "", reason: "is no object of its type: \(error)"))
        default: Problem(type: typePrefix + "bad-request", title: "Bad request", status: 400)
        }
    }

    package static func noAnswer(_ detail: String) -> Problem {
        Problem(type: typePrefix + "no-answer", title: "No answer", status: 504, detail: detail)
    }

    /// The problem for a request that no agent had answered when the broker connection was lost.
    package static let connectionLost = Problem(
        type: typePrefix + "broker-unavailable",
        title: "Broker unavailable",
        status: 503,
        detail: "The request was published. The connection to the broker was lost before an agent responded."
    )

    package static func unsupportedMediaType(_ expected: String) -> Problem {
        Problem(
            type: typePrefix + "unsupported-media-type",
            title: "Unsupported media type",
            status: 415,
            detail: "Send the body as \(expected)."
        )
    }

    package static func invalidParameter(_ name: String, _ reason: String) -> Problem {
        Problem(
            type: typePrefix + "invalid-parameter",
            title: "Invalid parameter",
            status: 400,
            detail: "\(name) \(reason).",
            members: [("parameter", .string(name))]
        )
    }

    /// - Parameter pointer: the conflicting part of the request; nil for the whole request.
    package static func conflict(_ detail: String, pointer: String? = nil) -> Problem {
        Problem(
            type: typePrefix + "conflict",
            title: "Conflict",
            status: 409,
            detail: detail,
            members: pointer.map { [("pointer", .string($0))] } ?? []
        )
    }

    package static func contentTooLarge(_ detail: String) -> Problem {
        Problem(type: typePrefix + "content-too-large", title: "Content too large", status: 413, detail: detail)
    }

    package static func tooManySubscriptions(_ detail: String, status: Int = 503) -> Problem {
        Problem(
            type: typePrefix + "too-many-subscriptions",
            title: "Too many subscriptions",
            status: status,
            detail: detail,
            headers: retry
        )
    }

    package static func notFound(_ path: String) -> Problem { notFound(detail: "There is nothing at \(short(path)).") }

    package static func notFound(detail: String) -> Problem {
        Problem(type: typePrefix + "not-found", title: "Not found", status: 404, detail: detail)
    }
}

extension Problem {
    /// The problem as the end of a published request. The client must not treat it as the problem of a request without
    /// effect: therefore it has an additional member and does not ask for a repetition.
    package var afterPublication: Problem {
        var problem = self
        problem.members.append(("published", .boolean(true)))
        problem.headers.removeAll { $0.name == "Retry-After" }
        return problem
    }
}
