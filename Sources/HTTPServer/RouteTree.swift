/// A router's routes as a tree of segments. Look-ups allocate memory only for parameters.
final class RouteTree: Sendable {
    struct Match {
        enum Outcome {
            case found(handler: HTTPHandler, parameters: PathParameters)
            /// The server's own answer: 204 to OPTIONS, 404, 405, or 400 to a malformed escape.
            case answered(HTTPResponse)
        }

        let outcome: Outcome
        /// The index of the endpoint; nil if there is none.
        var endpoint: Int?

        static func answered(_ response: HTTPResponse) -> Match { Match(outcome: .answered(response)) }
    }

    private struct Endpoint: Sendable {
        let template: String
        let names: [String]
        var handlers: [HTTPMethod: HTTPHandler] = [:]
        var allow = ""
        var methodNotAllowed: HTTPResponse
        var options: HTTPResponse
    }

    private struct Node: Sendable {
        var literals: [(segment: [UInt8], node: Int)] = []
        var parameter: Int?
        var endpoint: Int?
    }

    private let nodes: [Node]
    private let endpoints: [Endpoint]
    private let refusals: Refusals
    private let notFound: (@Sendable (_ path: String) -> HTTPResponse)?

    init(_ router: Router, refusals: Refusals) {
        var nodes = [Node()]
        var endpoints: [Endpoint] = []
        for route in router.routes {
            var node = 0
            var names: [String] = []
            for segment in route.pathTemplate.utf8.dropFirst().split(
                separator: UInt8(ascii: "/"),
                omittingEmptySubsequences: false
            ) {
                let bytes = Array(segment)
                let next: Int
                if bytes.first == UInt8(ascii: "{"), bytes.last == UInt8(ascii: "}") {
                    names.append(String(decoding: bytes.dropFirst().dropLast(), as: UTF8.self))
                    next = nodes[node].parameter ?? nodes.count
                    nodes[node].parameter = next
                } else if let known = nodes[node].literals.first(where: { $0.segment == bytes }) {
                    next = known.node
                } else {
                    next = nodes.count
                    nodes[node].literals.append((bytes, next))
                }
                if next == nodes.count { nodes.append(Node()) }
                node = next
            }
            let index = nodes[node].endpoint ?? endpoints.count
            if index == endpoints.count {
                nodes[node].endpoint = index
                let response = refusals.notFound
                endpoints.append(
                    Endpoint(template: route.pathTemplate, names: names, methodNotAllowed: response, options: response)
                )
            }
            endpoints[index].handlers[route.method] = route.handler
        }
        for index in endpoints.indices {
            var allowed = Set(endpoints[index].handlers.keys).union([.options])
            if allowed.contains(.get) { allowed.insert(.head) }
            let allow = HTTPMethod.allCases.filter(allowed.contains).map(\.rawValue).joined(separator: ", ")
            endpoints[index].allow = allow
            endpoints[index].methodNotAllowed = refusals.methodNotAllowed(allow: allow)
            endpoints[index].options = HTTPResponse(status: 204, headers: [("Allow", allow)])
        }
        self.nodes = nodes
        self.endpoints = endpoints
        self.refusals = refusals
        notFound = router.notFound
    }

    /// Looks up a raw path, which starts with `/`.
    func match(_ method: HTTPMethod?, _ path: UnsafeBufferPointer<UInt8>) -> Match {
        guard let first = path.first, first == UInt8(ascii: "/") else { return .answered(refusals.malformedTarget) }
        // libmicrohttpd accepts spaces in a target, which RFC 9112, section 3.2, does not allow.
        if path.contains(UInt8(ascii: " ")) || (!PercentCoding.isPlain(path) && PercentCoding.decode(path) == nil) {
            return .answered(refusals.malformedTarget)
        }
        var ranges: [Range<Int>] = []
        guard let index = find(node: 0, path, from: 1, &ranges) else {
            return .answered(notFound.map { $0(String(decoding: path, as: UTF8.self)) } ?? refusals.notFound)
        }
        return Match(outcome: answer(method, endpoints[index], path, ranges), endpoint: index)
    }

    /// Returns the path of an endpoint as registered.
    func pathTemplate(ofEndpoint index: Int) -> String { endpoints[index].template }

    /// The paths of all endpoints as registered.
    var pathTemplates: [String] { endpoints.map(\.template) }

    /// Returns the methods that the path of an endpoint allows, in the format of `Allow`.
    func allow(ofEndpoint index: Int) -> String { endpoints[index].allow }

    private func answer(
        _ method: HTTPMethod?,
        _ endpoint: Endpoint,
        _ path: UnsafeBufferPointer<UInt8>,
        _ ranges: [Range<Int>]
    ) -> Match.Outcome {
        guard let method else { return .answered(endpoint.methodNotAllowed) }
        let handler = endpoint.handlers[method] ?? (method == .head ? endpoint.handlers[.get] : nil)
        guard let handler else {
            return .answered(method == .options ? endpoint.options : endpoint.methodNotAllowed)
        }
        guard !ranges.isEmpty else {
            return .found(handler: handler, parameters: PathParameters(names: [], values: []))
        }
        var values: [String] = []
        values.reserveCapacity(ranges.count)
        for range in ranges {
            guard let value = PercentCoding.decode(UnsafeBufferPointer(rebasing: path[range])) else {
                return .answered(refusals.malformedTarget)
            }
            values.append(value)
        }
        return .found(handler: handler, parameters: PathParameters(names: endpoint.names, values: values))
    }

    /// Returns the endpoint for the segments from `start` on. Backtracks if a literal segment has no match but a
    /// parameter would; the recursion depth is that of the tree, rather than that of the path.
    private func find(
        node: Int,
        _ path: UnsafeBufferPointer<UInt8>,
        from start: Int,
        _ ranges: inout [Range<Int>]
    ) -> Int? {
        guard start <= path.count else { return nodes[node].endpoint }
        var end = start
        while end < path.count, path[end] != UInt8(ascii: "/") { end += 1 }
        let segment = UnsafeBufferPointer(rebasing: path[start..<end])
        for (literal, next) in nodes[node].literals where matches(segment, literal) {
            if let endpoint = find(node: next, path, from: end + 1, &ranges) { return endpoint }
        }
        guard let parameter = nodes[node].parameter, !segment.isEmpty else { return nil }
        ranges.append(start..<end)
        if let endpoint = find(node: parameter, path, from: end + 1, &ranges) { return endpoint }
        ranges.removeLast()
        return nil
    }

    private func matches(_ segment: UnsafeBufferPointer<UInt8>, _ literal: [UInt8]) -> Bool {
        if segment.elementsEqual(literal) { return true }
        guard segment.contains(UInt8(ascii: "%")) else { return false }
        return PercentCoding.unescape(segment) == literal
    }
}
