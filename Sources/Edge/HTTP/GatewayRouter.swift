import Access
import Base
import HTTPServer
import ProblemDetails

/// Registers the resources of the gateway.
///
/// Handlers get the principal that the admission has determined for the request. Routes are public only if registered
/// as such.
struct GatewayRouter {
    /// Answers a request of a principal. See `HTTPHandler` for its thread.
    typealias Handler = @Sendable (borrowing HTTPRequest, Principal) -> HTTPReply

    private(set) var router = Router()
    /// The templates of the routes without access control.
    private(set) var publicPaths: Set<String> = []
    let idempotency: IdempotencyTable
    /// Charges a client for the bytes of a request's body.
    private let charge: @Sendable (Principal, Int) -> Void

    /// - Parameters:
    ///   - idempotency: the first answers to requests with an `Idempotency-Key`.
    ///   - charge: charges a principal for the bytes of a request's body.
    init(
        _ idempotency: IdempotencyTable,
        charge: @escaping @Sendable (Principal, Int) -> Void = { _, _ in }
    ) {
        (self.idempotency, self.charge) = (idempotency, charge)
    }

    /// Registers a handler for operations, which the gate controls.
    ///
    /// - Parameter query: the names of the query parameters that the handler reads. A request with others is refused.
    mutating func on(
        _ method: HTTPMethod,
        _ path: String,
        query: QueryNames = [],
        _ handler: @escaping Handler
    ) {
        router.on(method, path) { [charge] request in
            // Not expected: the admission sets a principal for each request on such a route.
            guard let principal = request.context as? Principal else {
                return .response(Problems.noToken.response())
            }
            charge(principal, request.body.count)
            do throws(InvalidParameter) {
                try query.check(request.queryItems.lazy.map(\.name), event: request.parameters["event"])
            } catch {
                return .response(error.problem.response())
            }
            do throws(Problem) {
                guard let text = try BodyEncoding.decoded(request) else { return handler(request, principal) }
                return handler(request.replacing(body: text), principal)
            } catch {
                return .response(error.response())
            }
        }
    }

    /// Registers a handler that performs no operation and needs no permission. It ignores the query.
    mutating func onPublic(_ method: HTTPMethod, _ path: String, _ handler: @escaping HTTPHandler) {
        router.on(method, path, handler)
        publicPaths.insert(path)
    }

    /// Answers requests for unknown paths with the nearest of the registered paths.
    mutating func suggestPaths() {
        let paths = NearPaths(Set(router.routes.map(\.pathTemplate)))
        router.notFound = { path in Problems.notFound(detail: paths.detail(for: path)).response() }
    }

    /// Decides on each request before its body is read.
    mutating func admit(_ admission: @escaping @Sendable (borrowing HTTPRequestHead) -> HTTPAdmission) {
        router.admission = admission
    }
}

extension HTTPReply {
    /// Returns the reply of an operation that runs to completion now.
    static func performing(_ answer: () throws -> HTTPResponse) -> HTTPReply {
        do {
            return .response(try answer())
        } catch {
            return .response(Problems.of(error).response())
        }
    }

    /// Returns the reply of an asynchronous operation.
    static func awaiting(_ answer: @escaping @Sendable () async throws -> HTTPResponse) -> HTTPReply {
        .later { pending in
            Task {
                do {
                    pending.complete(try await answer())
                } catch {
                    pending.complete(Problems.of(error).response())
                }
            }
        }
    }
}
