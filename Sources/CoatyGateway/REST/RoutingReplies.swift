import Coaty
import HTTPServer

extension HTTPReply {
    /// Returns a reply that is computed on the ``ControllerActor``, which runs the routers.
    static func routing(_ answer: @escaping @ControllerActor @Sendable () async throws -> HTTPResponse) -> HTTPReply {
        routing(answer, encode: \.self)
    }

    /// Returns a reply from a result of the ``ControllerActor``.
    ///
    /// `encode` runs outside of the actor, so that large results do not block the routers.
    static func routing<Found: Sendable>(
        _ find: @escaping @ControllerActor @Sendable () async throws -> Found,
        encode: @escaping @Sendable (Found) -> HTTPResponse
    ) -> HTTPReply {
        .later { pending in
            Task {
                do {
                    pending.complete(encode(try await find()))
                } catch {
                    pending.complete(Problems.routing(error))
                }
            }
        }
    }
}

extension HTTPResponse {
    static func json(_ body: [UInt8], version: EntityTag? = nil) -> HTTPResponse {
        var headers = [(name: "Content-Type", value: "application/json"), ("Cache-Control", "no-store")]
        if let version { headers.append(("ETag", version.text)) }
        return HTTPResponse(status: 200, headers: headers, body: body)
    }
}

extension HTTPRequest {
    /// The context id in the path.
    var contextId: CoatyUUID { CoatyUUID(wire: parameters["objectId"] ?? "") }

    var ifMatch: IfMatch? {
        get throws(InvalidParameter) {
            guard let value = header("If-Match") else { return nil }
            return try IfMatch(value)
        }
    }
}

extension Problems {
    static func unknownContext(_ id: CoatyUUID) -> Problem {
        notFound(detail: "There is no IO context \(id).")
    }

    static let unsupportedPatchType = Problem(
        type: typePrefix + "unsupported-media-type",
        title: "Unsupported media type",
        status: 415,
        detail: "Send the patch as application/merge-patch+json."
    ).response()

    /// Returns the response for an error of the routing admin.
    static func routing(_ error: any Error) -> HTTPResponse {
        switch error {
        case let error as RoutingAdmin.Failure: response(error)
        case is Turns.Full:
            Problem(
                type: typePrefix + "too-many-pending-updates",
                title: "Too many pending updates",
                status: 503,
                detail: "Too many updates of this context are pending."
            ).response(headers: [("Retry-After", String(retryAfter))])
        case let error as DecodingError:
            // Valid JSON, but not an object of its registered class.
            of(.invalid(pointer: "", reason: "is no object of its type: \(error)")).response()
        default: response(error)
        }
    }

    private static func response(_ failure: RoutingAdmin.Failure) -> HTTPResponse {
        switch failure {
        case .notFound(let detail):
            notFound(detail: detail).response()
        case .conflict:
            conflict("Others update the context at the same time, again and again; nothing is changed.").response()
        case .preconditionFailed(let version):
            Problem(
                type: typePrefix + "precondition-failed",
                title: "Precondition failed",
                status: 412,
                detail: version == nil ? "It does not exist." : "It has changed since."
            ).response(headers: version.map { [("ETag", $0.text)] } ?? [])
        case .noAnswer(let milliseconds):
            noAnswer("No router completed the update within \(milliseconds) ms.")
        case .notKept:
            Problem(
                type: typePrefix + "state-not-kept",
                title: "State not kept",
                status: 500,
                detail: "The change is made, but could not be written to the state directory."
            ).response()
        }
    }
}
